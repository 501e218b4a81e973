package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

// slow is a model that goes on, a word at a time, when it is let; its second
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
	return model.Answer{Model: "slow", StopReason: eventlog.StopEndTurn}, nil
}

// take reads parts from a stream that goes on, until one holds the text.
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
	m := slow{[]string{"One ", "two ", "three ", "four."}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	var here uitest.Client
	cutOff := map[*uitest.Client]*stream{}
	for _, word := range m.words {
		m.next <- struct{}{}
		at := first.take(&here, word)

		anew := new(uitest.Client)
		whole := a.open("GET", "/chat/s/stream", "")
		whole.take(anew, word)
		require.Equal(t, here.Parts, anew.Parts)
		require.Equal(t, "msg-1", anew.ID)
		cutOff[anew] = whole

		again := here.Clone()
		again.Reconnect()
		rest := a.open("GET", "/chat/s/stream", "", "X-Resume-From-Sequence", at)
		rest.take(again, "data-stream-resync")
		cutOff[again] = rest
		event := here.Clone()
		event.Reconnect()
		cutOff[event] = a.open("GET", "/chat/s/stream", "", "Last-Event-ID", at)
	}
	first.take(&here, "[DONE]")
	require.Equal(t, "One two three four.", here.Parts[1]["text"])
	for c, s := range cutOff {
		s.take(c, "[DONE]")
		require.Equal(t, uitest.Normal(here.Parts), uitest.Normal(c.Parts))
		require.True(t, c.Finished)
	}
	require.Equal(t, http.StatusNoContent, a.get("/chat/s/stream").status)
	require.Equal(t, http.StatusNoContent, a.get("/chat/nobody/stream").status)
}

// TestReconnectKeepsTheClientsName: document 000, Resume Headers.
func TestReconnectKeepsTheClientsName(t *testing.T) {
	m := slow{[]string{"One"}, make(chan struct{})}
	a := newChat(t, []agentloop.Agent{{Name: "slow", Model: m}})
	first := a.open("POST", "/chat", says("s", "slow", "go"))
	var c uitest.Client
	at := first.take(&c, "start")
	a.open("GET", "/chat/s/stream", "", "X-Existing-Message-Id", "mine").take(&c, "start")
	require.Equal(t, "mine", c.ID)
	a.open("GET", "/chat/s/stream", "", "X-Existing-Message-Id", "my own", "X-Resume-From-Sequence", at).take(&c, `"start"`)
	require.Equal(t, "my own", c.ID)
	require.Equal(t, 416, a.get("/chat/s/stream", "Last-Event-ID", "999999").status)
	require.Equal(t, 400, a.get("/chat/s/stream", "X-Resume-From-Sequence", "x").status)
	require.Equal(t, 400, a.get("/chat/s/stream?format=other").status)
	m.next <- struct{}{}
	first.take(&c, "[DONE]")
}

// TestStoppedChats: both stops end the stream without an error, and nothing is
// under way then.
func TestStoppedChats(t *testing.T) {
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

// TestAClientOfACrashedRunResyncs: who saw what a crash has struck is told, and
// is equal to everybody else when it has loaded the snapshot.
func TestAClientOfACrashedRunResyncs(t *testing.T) {
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

// TestTheOtherDialect: document 003's parts, cut and gone on with.
func TestTheOtherDialect(t *testing.T) {
	a := newChat(t, talkers())
	got := a.post("/chat?format=text-stream-part", says("s", "worker", "go"))
	require.Equal(t, 200, got.status, got.body)
	require.Empty(t, got.header.Get("X-Vercel-Ai-Ui-Message-Stream"))
	require.Contains(t, got.body, `"type":"tool-result"`)
	require.True(t, strings.HasSuffix(got.body, "data: [DONE]\n\n"))
	frames := parts(t, got.body)
	text := func(frames []part) (all string) {
		for _, f := range frames {
			if f.kind() == "text-delta" {
				all += f.data["text"].(string)
			}
		}
		return all
	}
	for cut := range frames {
		at := ""
		for _, f := range frames[:cut] {
			if f.id != "" {
				at = f.id
			}
		}
		if at == "" {
			continue
		}
		rest := a.get("/chat/s/stream?format=text-stream-part", "Last-Event-ID", at)
		require.Equal(t, 200, rest.status)
		require.Equal(t, text(frames), text(frames[:cut])+text(parts(t, rest.body)))
	}
}
