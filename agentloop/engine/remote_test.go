package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/projector"
)

// server is another agent server, with one agent, analyst.
type server struct {
	*rig
	url    string
	cut    atomic.Int64 // event streams that are still to be cut off after a few bytes
	broken atomic.Bool  // answers 500
}

const analystOutput = `{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`

// newServer runs a server whose analyst speaks as m.
func newServer(t *testing.T, m model.Model, tools ...agentloop.Tool) *server {
	t.Helper()
	s := &server{rig: newRig(t, agentloop.Agent{
		Name: "analyst", Model: m, Tools: tools, OutputSchema: json.RawMessage(analystOutput),
	})}
	api, err := httpapi.New(httpapi.Options{Log: s.log, Loop: s.loop, AllowUnauthenticated: true, InterruptObservationDeadline: patience})
	require.NoError(t, err)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.broken.Load():
			w.WriteHeader(http.StatusInternalServerError)
			return
		case r.URL.Path == "/sse" && s.cut.Add(-1) >= 0:
			w = &cutOff{ResponseWriter: w, left: 600}
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		api.Close()
		front.Close()
	})
	s.url = front.URL
	return s
}

// cutOff breaks the connection after some bytes of the body.
type cutOff struct {
	http.ResponseWriter
	left int
}

func (c *cutOff) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutOff) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

// caller is an agent that hands its task to the server's analyst.
func (s *server) caller(timeout time.Duration) agentloop.Agent {
	return agentloop.Agent{
		Name: "caller",
		Model: script(scripted.Turn{ToolCalls: []scripted.Call{
			{ID: "c1", Name: "subagent__analyst", Arguments: json.RawMessage(`{"message":"what is it?"}`)},
		}}, scripted.Turn{Text: "It is told."}),
		RemoteAgents: []agentloop.RemoteAgent{{
			Name: "analyst", AgentType: "analyst", Timeout: timeout, OutputSchema: json.RawMessage(analystOutput),
			Transport:       remotehttp.New(s.url, &remotehttp.Options{RetryBaseDelay: time.Millisecond}),
			StreamRetryBase: time.Millisecond,
		}},
	}
}

const remoteID = "s-remote-c1"

// said is the text of an agent in the effective stream.
func (g *rig) said(session, agent string) string {
	g.t.Helper()
	var text strings.Builder
	for c, err := range eventlog.Chunks(eventlog.Effective(g.t.Context(), g.log, session, 0, 0)) {
		require.NoError(g.t, err)
		if d, ok := c.Chunk.(*eventlog.TextDelta); ok && d.AgentID == agent {
			text.WriteString(d.Delta)
		}
	}
	return text.String()
}

// until waits for a record of the session.
func (g *rig) until(session string, found func(eventlog.Record) bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
	defer cancel()
	for r, err := range g.log.Follow(ctx, session, 0) {
		require.NoError(g.t, err)
		if found(r) {
			return
		}
	}
}

// longAnswer is more than the pieces in which streams are cut.
var longAnswer = strings.Repeat("It is a long story. ", 50)

func answering(text string) model.Model {
	return script(scripted.Turn{Text: text, ToolCalls: []scripted.Call{
		{ID: "f", Name: "__finish__", Arguments: json.RawMessage(`{"answer":"42"}`)},
	}})
}

func TestARemoteAgentAnswersACall(t *testing.T) {
	there := newServer(t, answering(longAnswer))
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
	require.Empty(t, state.Parked)
	pairsOf(t, here.log, "s")

	require.Equal(t, longAnswer, here.said("s", remoteID), "its stream is in ours, under its own id")
	types := here.types("s")
	at := func(typ string) int { return slices.Index(types, typ) }
	require.IsIncreasing(t, []int{
		at("tool_start"), at("subagent_start"), at("[call_suspended]"), at("[remote_progress]"), at("subagent_end"),
	})
	end := at("subagent_end")
	require.Equal(t, []string{"[tool_result]", "tool_end"}, types[end+1:end+3])
	remoteState := stateOf(t, there.log, remoteID)
	require.JSONEq(t, `{"message":"what is it?"}`, remoteState.Messages[0].Content, "the input is its message, as JSON")
}

// A stream that is long over comes faster than it can be appended.
func TestALongRemoteStreamIsTakenOverWhole(t *testing.T) {
	there := newServer(t, answering("hi"))
	entries := []eventlog.Entry{
		factEntry(t, &fact.SessionCreated{AgentType: "analyst", Base: fact.Base{SessionID: remoteID}}),
		factEntry(t, &fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: fact.Base{SessionID: remoteID}}),
	}
	want := ""
	for i := range 900 {
		word := fmt.Sprintf("word %d, ", i)
		want += word
		e, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: word, Base: eventlog.Base{AgentID: remoteID, AgentType: "analyst"}},
			eventlog.Labels{Run: "r"})
		require.NoError(t, err)
		entries = append(entries, e)
	}
	output := json.RawMessage(`{"answer":"42"}`)
	entries = append(entries,
		factEntry(t, &fact.RunEnded{
			RunID: "r", Status: fact.RunCompleted, Output: output, Base: fact.Base{SessionID: remoteID},
		}),
		factEntry(t, &fact.StreamEnd{StreamID: remoteID, FinalOutput: output}))
	_, err := there.log.Append(t.Context(), remoteID, 0, entries)
	require.NoError(t, err)

	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.JSONEq(t, string(output), string(state.Messages[2].Result), "it had completed before it was asked again")
	require.Equal(t, want, here.said("s", remoteID))
}

func factEntry(t *testing.T, f fact.Fact) eventlog.Entry {
	t.Helper()
	e, err := eventlog.NewFact(remoteID, f, eventlog.Labels{Run: "r"})
	require.NoError(t, err)
	return e
}

func TestABrokenStreamIsPickedUpWhereItBroke(t *testing.T) {
	there := newServer(t, answering(longAnswer))
	there.cut.Store(2)
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	require.Equal(t, projector.SessionCompleted, here.ended("s").Status)
	require.Equal(t, longAnswer, here.said("s", remoteID), "nothing twice, nothing missing")
	require.Negative(t, there.cut.Load(), "streams were cut")
}

// gated is a model that stops in the middle of its answer until it is let go.
type gated struct {
	model.Model
	half chan struct{} // closed when it has said half
	goOn chan struct{}
}

func newGated(m model.Model) *gated {
	return &gated{Model: m, half: make(chan struct{}), goOn: make(chan struct{})}
}

func (g *gated) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	n := 0
	return g.Model.Generate(ctx, req, func(ev model.Event) error {
		if n++; n == 3 {
			select {
			case <-g.half:
			default:
				close(g.half)
			}
			select {
			case <-g.goOn:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return emit(ev)
	})
}

func TestAProcessThatDiesLeavesTheRemoteAgentToTheNextOne(t *testing.T) {
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	log := memory.New()
	first := newRigOn(t, log, there.caller(time.Minute))
	first.start("s", "caller", "go")
	first.followed(m)
	first.loop.Stop()

	second := newRigOn(t, log, there.caller(time.Minute))
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	close(m.goOn)
	require.Equal(t, projector.SessionCompleted, second.ended("s").Status)
	pairsOf(t, second.log, "s")
	require.Equal(t, longAnswer, second.said("s", remoteID))
	require.Len(t, stateOf(t, there.log, remoteID).Runs, 1, "the remote run continued all the time")
}

func TestARemoteAgentIsInterruptedAndResumedWithItsCaller(t *testing.T) {
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	here.followed(m)
	require.NoError(t, here.loop.Interrupt(t.Context(), "s", "lunch"))
	require.NoError(t, here.loop.AwaitStop(t.Context(), "s"))
	require.Equal(t, projector.SessionInterrupted, stateOf(t, here.log, "s").Status)
	require.NoError(t, there.loop.AwaitStop(t.Context(), remoteID))
	require.Equal(t, projector.SessionInterrupted, stateOf(t, there.log, remoteID).Status)

	close(m.goOn)
	_, err := here.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
	pairsOf(t, here.log, "s")
}

func TestARemoteAgentIsAbortedWithItsCaller(t *testing.T) {
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	here.followed(m)
	require.NoError(t, here.loop.Abort(t.Context(), "s", "enough"))
	state := here.ended("s")
	require.Equal(t, agentloop.CodeAborted, state.Error.Code)
	require.Equal(t, agentloop.CodeAborted, state.Messages[2].ErrorCode, "its call has a result")
	pairsOf(t, here.log, "s")
	require.NoError(t, there.loop.AwaitStop(t.Context(), remoteID))
	require.Equal(t, projector.SessionFailed, stateOf(t, there.log, remoteID).Status)
}

func TestARemoteAgentThatTakesTooLongIsAborted(t *testing.T) {
	t.Parallel() // most of it is waiting
	there := newServer(t, newGated(answering(longAnswer)))
	here := newRig(t, there.caller(3*time.Second))
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status, "the model continues without it")
	require.Equal(t, agentloop.CodeToolTimeout, state.Messages[2].ErrorCode)
	require.NotContains(t, here.types("s"), "tool_output_error", "it was dispatched")
	pairsOf(t, here.log, "s")
	require.NoError(t, there.loop.AwaitStop(t.Context(), remoteID))
	require.Equal(t, projector.SessionFailed, stateOf(t, there.log, remoteID).Status)
}

func TestARemoteAgentThatWaitsForAPersonFailsTheCall(t *testing.T) {
	there := newServer(t, script(call("pick", `{}`)), agentloop.Tool{Name: "pick", Client: true})
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, agentloop.CodeRemoteClientTool, state.Messages[2].ErrorCode)
	pairsOf(t, here.log, "s")
	require.NoError(t, there.loop.AwaitStop(t.Context(), remoteID))
	require.Equal(t, projector.SessionFailed, stateOf(t, there.log, remoteID).Status)
}

func TestAServerThatIsBrokenFailsTheCallOnly(t *testing.T) {
	there := newServer(t, answering("hi"))
	there.broken.Store(true)
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, agentloop.CodeToolFailed, state.Messages[2].ErrorCode)
	require.NotContains(t, state.Messages[2].Error, there.url, "addresses are not revealed")
	require.Equal(t, strings.TrimPrefix(there.url, "http://")+" answered 500 Internal Server Error (check remoteAgents.analyst.url)", causeOf(t, here))
	requireDispatchFailed(t, here)
	pairsOf(t, here.log, "s")
}

func TestAnUnknownRemoteAgentFailsTheCallOnly(t *testing.T) {
	there := newServer(t, answering("hi"))
	agent := there.caller(time.Minute)
	agent.RemoteAgents[0].AgentType = "nobody"
	here := newRig(t, agent)
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, agentloop.CodeToolFailed, state.Messages[2].ErrorCode)
	require.Equal(t, strings.TrimPrefix(there.url, "http://")+" answered 404 Not Found (check remoteAgents.analyst.agentType)", causeOf(t, here))
	requireDispatchFailed(t, here)
}

func TestAForkAsksItsOwnRemoteAgent(t *testing.T) {
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	here.followed(m)
	require.NoError(t, here.loop.Interrupt(t.Context(), "s", "wait"))
	require.NoError(t, here.loop.AwaitStop(t.Context(), "s"))
	_, err := here.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
	require.NoError(t, err)
	close(m.goOn)
	_, err = here.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "f"})
	require.NoError(t, err)
	require.Equal(t, projector.SessionCompleted, here.ended("f").Status)
	require.Equal(t, longAnswer, here.said("f", "f-remote-c1"))
	require.Equal(t, projector.SessionInterrupted, stateOf(t, there.log, remoteID).Status)
}

// What a rollback truncates of a remote stream is taken over again.
func TestARollbackIntoARemoteCallTakesItsStreamOverAgain(t *testing.T) {
	there := newServer(t, answering(longAnswer))
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	here.ended("s")
	released(t, here.loop)
	var places []uint64
	for r, err := range here.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == "call_suspended" || r.Type == "session_created" && r.Agent == remoteID || r.Type == "model_turn" {
			places = append([]uint64{r.Sequence}, places...)
		}
	}
	require.GreaterOrEqual(t, len(places), 3)
	for _, at := range places {
		_, err := here.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{Sequence: at})
		require.NoError(t, err)
		began, err := here.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
		state := here.comes("s", func(t *projector.Tree) bool { return t.Over() && t.CurrentRun().RunID == began.RunID })
		require.Equal(t, projector.SessionCompleted, state.Status)
		require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
		require.Equal(t, longAnswer, here.said("s", remoteID))
		pairsOf(t, here.log, "s")
		released(t, here.loop)
	}
}
