package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

// slow is a model that continues, a word at a time, when it is let; its second
// answer to a conversation is another one.
type slow struct {
	words []string
	next  chan struct{}
}

func (s slow) Generate(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	for _, w := range s.words {
		select {
		case <-s.next:
		case <-ctx.Done():
			return model.Answer{}, &model.Error{Code: model.CodeProvider, Message: "cancelled", Cause: ctx.Err()}
		}
		if err := emit(model.TextDelta{Text: w}); err != nil {
			return model.Answer{}, err
		}
	}
	return model.Answer{Model: "slow", StopReason: fact.StopEndTurn}, nil
}

// take reads parts from a stream that continues, until one holds the text.
func (s *stream) take(c *uitest.Client, text string) (last string) {
	s.t.Helper()
	for _, e := range s.until(text) {
		if e.data == "" || e.data == "[DONE]" {
			continue
		}
		if e.id != "" {
			last = e.id
		}
		require.NoError(s.t, c.Read([]byte(e.data)))
	}
	return last
}

// TestAChatCutWhileItIsLive: at every word, a client that reconnects without a
// position gets the whole message, one that has a position the rest; both are
// there for what follows.
func TestAChatCutWhileItIsLive(t *testing.T) {
	t.Parallel()
	m := slow{[]string{"One ", "two ", "three ", "four", "."}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	var here uitest.Client
	cutOff := map[*uitest.Client]*stream{}
	for _, word := range m.words[:4] { // with the last one the run ends
		m.next <- struct{}{}
		at := first.take(&here, word)

		anew := new(uitest.Client)
		whole := a.open("GET", "/chat/s/stream", "")
		whole.take(anew, word)
		require.Equal(t, here.Parts, anew.Parts)
		require.Equal(t, "msg-1", anew.ID)
		cutOff[anew] = whole

		again := here.Clone()
		rest := a.open("GET", "/chat/s/stream", "", "X-Resume-From-Sequence", at)
		rest.take(again, "data-stream-resync")
		cutOff[again] = rest
		event := here.Clone()
		cutOff[event] = a.open("GET", "/chat/s/stream", "", "Last-Event-ID", at)
	}
	m.next <- struct{}{}
	first.take(&here, "[DONE]")
	require.Equal(t, "One two three four.", here.Parts[1]["text"])
	for c, s := range cutOff {
		s.take(c, "[DONE]")
		require.Equal(t, here.Parts, c.Parts)
		require.True(t, c.Finished)
	}
	require.Equal(t, http.StatusNoContent, a.get("/chat/s/stream").status)
	require.Equal(t, http.StatusNoContent, a.get("/chat/nobody/stream").status)
}

// TestReconnectKeepsTheClientsName: a client that reconnects with frames of the message keeps
// its id of the message, and no start part resets it.
func TestReconnectKeepsTheClientsName(t *testing.T) {
	t.Parallel()
	m := slow{[]string{"One", "two"}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	var c uitest.Client
	first.take(&c, "start")
	named := new(uitest.Client)
	a.open("GET", "/chat/s/stream", "", "X-Existing-Message-Id", "mine").take(named, "start")
	require.Equal(t, "mine", named.ID)
	m.next <- struct{}{}
	at := first.take(&c, "text-delta")
	rest := a.open("GET", "/chat/s/stream", "", "X-Existing-Message-Id", "my own", "X-Resume-From-Sequence", at)
	m.next <- struct{}{}
	first.take(&c, "[DONE]")
	for _, e := range rest.until("[DONE]") {
		require.NotContains(t, e.data, `"start"`)
		require.NotContains(t, e.data, `"start-step"`)
	}
}

// TestPositionsAreReadStrictly: a position is an id that a stream has sent.
func TestPositionsAreReadStrictly(t *testing.T) {
	t.Parallel()
	a := newChat(t, talkers())
	got := a.post("/chat", says("s", "texter", "go"))
	head := a.status("s").LatestSequence
	ids := map[string]int{
		"": 400, "x": 400, "-1": 400, "+1": 400, "01": 400, "1.": 400, "1.0": 400, "1.01": 400, "1.+1": 400, "1.-1": 400, ".1": 400, "1.1.1": 400,
		"1,1": 400, " 1.5": 200, "1.99999999999999999999": 400, "99999999999999999999": 400, "0x1": 400, "1e3": 400,
		fmt.Sprint(head, ".1"): 416, fmt.Sprint(head + 1): 416, fmt.Sprint(head): 204, "0": 200, "0.1": 200,
		"18446744073709551615": 416, "18446744073709551615.1": 416,
	}
	for _, f := range chatFrames(t, got.body)[1:] {
		ids[f.id] = 200
	}
	for id, want := range ids {
		for _, header := range []string{"X-Resume-From-Sequence", "Last-Event-ID"} {
			got := a.get("/chat/s/stream", header, id)
			switch {
			case id == "": // as if it were not there
				require.Equal(t, 204, got.status)
			case want == 400:
				got.failed(t, 400, api.CodeInvalidRequest)
				got = a.post("/chat", `{"id":"s","messages":[]}`, header, id)
				require.Equal(t, 400, got.status)
			case want == 416:
				got.failed(t, 416, api.CodeCursorAhead)
			default:
				require.Contains(t, []int{want, 204}, got.status, "%s: %q: %s", header, id, got.body)
			}
		}
	}
}

// TestStartComesFirst: a client that has no frame of the message gets start
// before all else, whatever facts its position covers, in either dialect.
func TestStartComesFirst(t *testing.T) {
	t.Parallel()
	for name, format := range map[string]string{"UI message": "", "text stream part": "?format=text-stream-part"} {
		t.Run(name, func(t *testing.T) {
			may := make(chan struct{})
			model := late{scripted.New([]scripted.Turn{{Text: "Hello."}}, nil), may}
			a := newChat(t, []agentloop.Agent{{Name: "late", Model: model}})
			first := a.open("POST", "/chat"+format, says("s", "late", "go"))
			begin := first.until(`"start"`)
			open := map[uint64]*stream{}
			for n := range a.status("s").LatestSequence + 1 {
				header := []string{"X-Resume-From-Sequence", "Last-Event-ID"}[n%2]
				open[n] = a.open("GET", "/chat/s/stream"+format, "", header, fmt.Sprint(n))
			}
			whole := a.open("GET", "/chat/s/stream"+format, "")
			close(may)
			all := kindsOf(append(begin, first.until("[DONE]")...))
			require.Equal(t, "start", all[0])
			require.Equal(t, all, kindsOf(whole.until("[DONE]")))
			for n, s := range open {
				require.Equal(t, all, kindsOf(s.until("[DONE]")), "from %d", n)
			}
			require.Greater(t, len(open), 2, "facts come before the first frame")
		})
	}
}

// kindsOf returns the types of events' parts that are not transient.
func kindsOf(events []sseEvent) (kinds []string) {
	for _, e := range events {
		var p struct {
			Type      string
			Transient bool
		}
		if json.Unmarshal([]byte(e.data), &p) == nil && !p.Transient {
			kinds = append(kinds, p.Type)
		}
	}
	return kinds
}

// TestStoppedChats: both stops end the stream without an error, and nothing is
// under way then.
func TestStoppedChats(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"interrupt", "abort"} {
		t.Run(how, func(t *testing.T) {
			m := slow{[]string{"One ", "two"}, make(chan struct{})}
			a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
			s := a.open("POST", "/chat", says("s", "slow", "go"))
			m.next <- struct{}{}
			var c uitest.Client
			s.take(&c, "One")
			require.Equal(t, 200, a.post("/chat/s/"+how, `{"reason":"coffee"}`).status)
			s.take(&c, "[DONE]")
			require.True(t, c.Aborted)
			require.False(t, c.Finished)
			require.Empty(t, c.ErrorText)
			require.Equal(t, http.StatusNoContent, a.get("/chat/s/stream").status)
			if how == "abort" {
				return
			}
			var snap struct {
				Messages []struct {
					ID    string
					Parts []uitest.Part
				}
				Status string
			}
			a.get("/chat/s/snapshot").decode(t, &snap)
			require.Equal(t, "paused", snap.Status)
			require.Equal(t, uitest.Normal(c.Parts), uitest.Normal(snap.Messages[1].Parts), "a page that is loaded again shows the same")

			further := a.open("POST", "/chat", says("s", "slow", "go on"))
			for range m.words {
				m.next <- struct{}{}
			}
			var next uitest.Client
			further.take(&next, "[DONE]")
			a.get("/chat/s/snapshot").decode(t, &snap)
			require.Len(t, snap.Messages, 4)
			require.Equal(t, "msg-3", snap.Messages[3].ID)
			require.Equal(t, "msg-3", next.ID)
		})
	}
}

// TestAClientOfACrashedRunResyncs: a client that has seen chunks which a crash has
// truncated is notified, and equals every other client once it has loaded the snapshot.
func TestAClientOfACrashedRunResyncs(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	m := slow{[]string{"One ", "two"}, make(chan struct{})}
	agents := []agentloop.Agent{{Name: "slow", Model: m}}
	first := newAPIOn(t, log, agents, withChat())
	s := first.open("POST", "/chat", says("s", "slow", "go"))
	m.next <- struct{}{}
	var saw uitest.Client
	at := s.take(&saw, "One")
	first.loop.Stop() // it dies

	second := newAPIOn(t, log, agents, withChat())
	attached := second.open("GET", "/chat/s/stream", "")
	var there uitest.Client
	attached.take(&there, "One")
	require.Equal(t, 200, second.post("/resume", `{"sessionId":"s"}`).status)
	attached.take(&there, "data-stream-resync")
	var fresh, behind uitest.Client
	late := second.open("GET", "/chat/s/stream", "", "Last-Event-ID", at)
	late.take(&behind, "data-stream-resync")
	m.next <- struct{}{}
	attached.take(&there, `"One "`)
	whole := second.open("GET", "/chat/s/stream", "")
	m.next <- struct{}{}
	for c, s := range map[*uitest.Client]*stream{&there: attached, &fresh: whole, &behind: late} {
		s.take(c, "[DONE]")
		require.True(t, c.Finished)
	}
	require.Equal(t, "One two", uitest.Normal(fresh.Parts)[1]["text"])
	for _, p := range fresh.Transient {
		require.NotEqual(t, "data-stream-resync", p["type"], "it has nothing to load again")
	}
	for _, c := range []*uitest.Client{&there, &behind} {
		resync := c.Transient[len(c.Transient)-1]
		if c == &there {
			require.Equal(t, "data-stream-resync", resync["type"])
		}
		raw, err := json.Marshal(c.Transient)
		require.NoError(t, err)
		require.Contains(t, string(raw), "crash_recovery")
	}
	var snap struct {
		Messages []struct{ Parts []uitest.Part }
	}
	second.get("/chat/s/snapshot").decode(t, &snap)
	require.Equal(t, uitest.Normal(fresh.Parts), uitest.Normal(snap.Messages[1].Parts))
}

// TestAPageLoadedAfterAResumeHasNothingToLoadAgain: a resumed run truncates text that was
// streamed before. Only clients that have some of it are notified.
func TestAPageLoadedAfterAResumeHasNothingToLoadAgain(t *testing.T) {
	t.Parallel()
	m := slow{[]string{"One ", "two ", "three"}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	var saw uitest.Client
	m.next <- struct{}{}
	at := first.take(&saw, "One")
	require.Equal(t, 200, a.post("/chat/s/interrupt", `{}`).status)
	first.take(&saw, "[DONE]")
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s"}`).status)
	m.next <- struct{}{} // the model is asked after the truncation

	var snap struct {
		StreamSequence uint64
		Status         string
	}
	a.get("/chat/s/snapshot").decode(t, &snap)
	require.Equal(t, "active", snap.Status)
	var loaded, behind uitest.Client
	page := a.open("GET", "/chat/s/stream", "", "Last-Event-ID", fmt.Sprint(snap.StreamSequence))
	page.take(&loaded, `"One "`)
	for _, p := range loaded.Transient {
		require.NotEqual(t, "data-stream-resync", p["type"], "the page would load, and read the same again")
	}
	late := a.open("GET", "/chat/s/stream", "", "Last-Event-ID", at)
	late.take(&behind, "data-stream-resync")
	m.next <- struct{}{}
	m.next <- struct{}{}
	page.take(&loaded, "[DONE]")
	require.True(t, loaded.Finished)
}

// TestAClientOfATurnThatIsTakenBackIsNotified: the session goes back to the end of an earlier
// turn, while a client reads, and while one has no connection. Clients without a frame of
// the turn lack nothing.
func TestAClientOfATurnThatIsTakenBackIsNotified(t *testing.T) {
	t.Parallel()
	m := slow{[]string{"One ", "two."}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	m.next <- struct{}{}
	m.next <- struct{}{}
	var client uitest.Client
	had := first.take(&client, "[DONE]")
	end := a.tree("s").Head

	there := a.open("POST", "/chat", says("s", "slow", "and now?"))
	m.next <- struct{}{}
	var second uitest.Client
	at := there.take(&second, "One")
	live := a.stream(fmt.Sprint("/sse?sessionId=s&fromSequence=", end))
	live.until(`"One "`)
	require.Equal(t, 200, a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, end)).status)
	there.take(&second, "data-stream-resync")
	there.take(&second, "[DONE]")
	require.Contains(t, live.until(`"end"`)[0].data, "stream_resync")

	late := a.get("/chat/s/stream", "Last-Event-ID", at)
	require.Equal(t, 200, late.status)
	frames := chatFrames(t, late.body)
	require.Equal(t, []string{"data-stream-resync", "finish"}, []string{frames[0].kind(), frames[1].kind()})
	require.Equal(t, http.StatusNoContent, a.get("/chat/s/stream", "Last-Event-ID", frames[1].id).status)
	for _, id := range []string{had, fmt.Sprint(end), fmt.Sprint(a.tree("s").Head)} {
		require.Equal(t, http.StatusNoContent, a.get("/chat/s/stream", "Last-Event-ID", id).status)
	}
}

// TestTheOtherDialect: TextStreamParts, cut after each and continued.
func TestTheOtherDialect(t *testing.T) {
	t.Parallel()
	a := newChat(t, talkers())
	const format = "?format=text-stream-part"
	for _, agent := range []string{"worker", "texter", "faller", "asker", "parent"} {
		got := a.post("/chat"+format, says(agent, agent, "go"))
		require.Equal(t, 200, got.status, got.body)
		require.Empty(t, got.header.Get("X-Vercel-Ai-Ui-Message-Stream"))
		require.True(t, strings.HasSuffix(got.body, "data: [DONE]\n\n"))
		frames := parts(t, got.body)
		requireRising(t, frames)
		for i, f := range frames[1 : len(frames)-1] {
			rest := a.get("/chat/"+agent+"/stream"+format, "Last-Event-ID", f.id)
			require.Equal(t, 200, rest.status)
			require.Equal(t, frames[i+2:], parts(t, rest.body), "after %s", f.id)
		}
	}
}
