package httpapi_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

// late is a model that says nothing before it may.
type late struct {
	model.Model
	may chan struct{}
}

func (l late) Generate(ctx context.Context, r model.Request, emit func(model.Event) error) (model.Answer, error) {
	select {
	case <-l.may:
	case <-ctx.Done():
		return model.Answer{}, &model.Error{Code: model.CodeProvider, Message: "cancelled", Cause: ctx.Err()}
	}
	return l.Model.Generate(ctx, r, emit)
}

// page is a chat client's page.
type page struct {
	uitest.Client
	a *testAPI
}

// read takes a stream to its end.
func (p *page) read(body string) {
	p.a.t.Helper()
	p.Reconnect()
	readParts(p.a.t, &p.Client, chatFrames(p.a.t, body))
}

// sends posts the page's assistant message back.
func (p *page) sends(session string) {
	p.a.t.Helper()
	raw, err := json.Marshal(p.Parts)
	require.NoError(p.a.t, err)
	got := p.a.post("/chat", goesOn(session, p.ID, string(raw[1:len(raw)-1])))
	require.Equal(p.a.t, 200, got.status, got.body)
	p.read(got.body)
}

// shows checks that the page shows what one would that is loaded now.
func (p *page) shows(session string) {
	p.a.t.Helper()
	var snap struct {
		Messages []struct {
			ID    string
			Parts []uitest.Part
		}
	}
	p.a.get("/chat/"+escape(session)+"/snapshot").decode(p.a.t, &snap)
	last := snap.Messages[len(snap.Messages)-1]
	require.Equal(p.a.t, last.ID, p.ID)
	require.Equal(p.a.t, uitest.Normal(last.Parts), uitest.Normal(p.Parts))
}

func (a *testAPI) awaited(session string, n int) {
	a.t.Helper()
	require.Eventually(a.t, func() bool { return len(a.tree(session).AwaitedCalls()) == n }, within, time.Millisecond)
}

// outlivingAgents are a boss whose sub-agent continues beside it, and asks for an
// approval as soon as it may.
func outlivingAgents(may chan struct{}, bossSays ...scripted.Turn) []agentloop.Agent {
	tools := waitingAgents()
	return []agentloop.Agent{
		{
			Name: "boss", Tools: tools[1].Tools, PersistentAgents: []agentloop.PersistentAgent{{Agent: "helper", Mode: agentloop.NonBlocking}},
			Model: scripted.New(append([]scripted.Turn{{ToolCalls: []scripted.Call{
				calling("spawn", "companion__spawnAgent", `{"agent":"helper","name":"h","initialMessage":"work"}`),
			}}}, bossSays...), nil),
		},
		{
			Name: "helper", Tools: tools[0].Tools,
			Model: late{scripted.New(saying("helped", calling("inner", "remove", `{}`)), nil), may},
		},
	}
}

// TestAQuestionBetweenTwoRequests: what a sub-agent asks when the root's stream
// has stopped comes with the answer to the next request, once.
func TestAQuestionBetweenTwoRequests(t *testing.T) {
	t.Parallel()
	may := make(chan struct{})
	a := newChat(t, outlivingAgents(may, scripted.Turn{ToolCalls: []scripted.Call{calling("here", "locate", `{}`)}}, scripted.Turn{Text: "Done."}))
	there, loaded := &page{a: a}, &page{a: a}
	there.read(a.post("/chat", says("s", "boss", "go")).body)
	close(may)
	a.awaited("s", 2)
	var snap struct {
		Messages []struct {
			ID    string
			Parts []uitest.Part
		}
	}
	a.get("/chat/s/snapshot").decode(t, &snap)
	loaded.ID, loaded.Parts = snap.Messages[1].ID, snap.Messages[1].Parts
	for _, p := range []*page{there, loaded} { // the second one's answer comes too late
		p.Parts = answered(p.Parts, "here", uitest.Part{"state": "output-available", "output": map[string]any{"lat": 1.0}})
		p.sends("s")
		p.shows("s")
		require.True(t, waitsAs(p.Parts, "inner", "approval-requested"))
	}
}

// TestAQuestionBehindTheEnd: a sub-agent that has outlived the root's turn asks,
// and a page that is loaded then can answer.
func TestAQuestionBehindTheEnd(t *testing.T) {
	t.Parallel()
	may := make(chan struct{})
	a := newChat(t, outlivingAgents(may, scripted.Turn{Text: "Bye."}))
	a.chat(says("s", "boss", "go"))
	close(may)
	a.awaited("s", 1)
	p := &page{a: a}
	var snap struct {
		Messages []struct {
			ID    string
			Parts []uitest.Part
		}
	}
	a.get("/chat/s/snapshot").decode(t, &snap)
	p.ID, p.Parts = snap.Messages[1].ID, snap.Messages[1].Parts
	require.True(t, waitsAs(p.Parts, "inner", "approval-requested"))
	p.Parts = answered(p.Parts, "inner", uitest.Part{"state": "approval-responded", "approval": map[string]any{"approved": true}})
	p.sends("s")
	a.awaited("s", 0)
	require.Eventually(t, func() bool {
		a.get("/chat/s/snapshot").decode(t, &snap)
		return waitsAs(snap.Messages[1].Parts, "inner", "output-available")
	}, within, time.Millisecond)
}

// TestTwoPagesAnswer: each answers one of two calls; the second one is notified of the
// first one's answer.
func TestTwoPagesAnswer(t *testing.T) {
	t.Parallel()
	a := newChat(t, talkers())
	one := &page{a: a}
	one.read(a.post("/chat", says("s", "locator", "go")).body)
	two := &page{a: a, Client: *one.Clone()}
	for p, call := range map[*page]string{one: "here", two: "there"} {
		p.Parts = answered(p.Parts, call, uitest.Part{"state": "output-available", "output": map[string]any{"lat": 1.0}})
	}
	one.sends("s")
	two.sends("s")
	two.shows("s")
}

// TestCallsOfAnEarlierMessage: what comes of them when the user has gone on is no
// part of the next message, in either dialect.
func TestCallsOfAnEarlierMessage(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"", "?format=text-stream-part"} {
		a := newChat(t, talkers(), func(o *chat.Options) { o.NoAutoResume = true })
		a.chat(says("s", "asker", "go"))
		require.Equal(t, 200, a.post("/chat/s/submit-tool-result", `{"kind":"approval-response","toolCallId":"rm","approved":true}`).status)
		got := a.post("/chat"+format, says("s", "", "and?"))
		require.NotContains(t, got.body, `"rm"`)
		if format == "" {
			p := &page{a: a}
			p.read(got.body)
			p.shows("s")
		}
	}
}

// TestANewMessageAfterACrash: the reply has the id that it has in the history,
// from which the crash's remains are gone.
func TestANewMessageAfterACrash(t *testing.T) {
	t.Parallel()
	log := newLog(t)
	m := slow{[]string{"One ", "two"}, make(chan struct{})}
	agents := []agentloop.Agent{{Name: "slow", Model: m}}
	first := newAPIOn(t, log, agents, withChat())
	s := first.open("POST", "/chat", says("s", "slow", "go"))
	m.next <- struct{}{}
	var c uitest.Client
	s.take(&c, "One")
	first.loop.Stop() // it dies

	second := newAPIOn(t, log, agents, withChat())
	p := &page{a: second}
	s = second.open("POST", "/chat", says("s", "", "go on"))
	for range m.words {
		m.next <- struct{}{}
	}
	s.take(&p.Client, "[DONE]")
	p.shows("s")
}

// sourcing cites something in mid-text, and then waits.
type sourcing struct{ gatedModel }

func (s sourcing) Generate(ctx context.Context, r model.Request, emit func(model.Event) error) (model.Answer, error) {
	for _, e := range []model.Event{
		model.TextDelta{Text: "x"}, model.Source{URL: "https://a.example"},
	} {
		if err := emit(e); err != nil {
			return model.Answer{}, err
		}
	}
	return s.gatedModel.Generate(ctx, r, emit)
}

// TestSourcesOfAnUnfinishedMessage: sources are where they were emitted, among the text.
func TestSourcesOfAnUnfinishedMessage(t *testing.T) {
	t.Parallel()
	a := newChat(t, []agentloop.Agent{{Name: "a", Model: sourcing{gatedModel{make(chan struct{})}}}})
	s := a.open("POST", "/chat", says("s", "a", "go"))
	var c uitest.Client
	s.take(&c, "waiting")
	var snap struct {
		Messages []struct{ Parts []uitest.Part }
	}
	a.get("/chat/s/snapshot?includePartialContent=1").decode(t, &snap)
	require.Equal(t, uitest.Normal(c.Parts), uitest.Normal(snap.Messages[1].Parts))
	require.Len(t, c.Parts, 4)
}
