package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// causeOf returns the cause in the results of calls, which is for operators: the model does not see it.
func causeOf(t *testing.T, g *rig) (cause string) {
	t.Helper()
	for r, err := range g.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		if r.Type == (*fact.ToolResult)(nil).Type() {
			f, err := r.Fact()
			require.NoError(t, err)
			cause += f.(*fact.ToolResult).Cause
		}
	}
	return cause
}

// requireDispatchFailed: the stream reports a remote agent that could not be
// run as it does of a local one.
func requireDispatchFailed(t *testing.T, g *rig) {
	t.Helper()
	types := g.types("s")
	at := slices.Index(types, "tool_output_error")
	require.GreaterOrEqual(t, at, 0, types)
	require.Contains(t, types[at:], "subagent_end")
	end := slices.Index(types, "subagent_end")
	require.Equal(t, []string{"[tool_result]", "tool_end"}, types[end+1:end+3])
}

// followed waits until the server's analyst has said half of its answer and
// some of that has been taken over.
func (g *rig) followed(m *gated) {
	g.t.Helper()
	<-m.half
	g.until("s", func(r eventlog.Record) bool { return r.Type == "text_delta" && r.Agent == remoteID })
}

func TestARemoteAgentIsAbortedThoughItsCallerHasDied(t *testing.T) {
	t.Parallel() // most of it is waiting
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	first := newRig(t, there.caller(time.Minute))
	first.start("s", "caller", "go")
	first.followed(m)
	first.loop.Stop()

	second := newRigOn(t, first.log, there.caller(time.Minute))
	require.NoError(t, second.loop.Abort(t.Context(), "s", "enough"))
	require.Equal(t, agentloop.CodeAborted, second.ended("s").Error.Code)
	pairsOf(t, second.log, "s")
	require.NoError(t, there.loop.AwaitStop(t.Context(), remoteID))
	require.Equal(t, projector.SessionFailed, stateOf(t, there.log, remoteID).Status)
}

func TestARemoteAgentIsAbortedWithItsInterruptedCaller(t *testing.T) {
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	here := newRig(t, there.caller(time.Minute))
	here.start("s", "caller", "go")
	here.followed(m)
	require.NoError(t, here.loop.Interrupt(t.Context(), "s", "lunch"))
	require.NoError(t, here.loop.AwaitStop(t.Context(), "s"))
	require.NoError(t, here.loop.Abort(t.Context(), "s", "enough"))
	require.Equal(t, agentloop.CodeAborted, here.ended("s").Error.Code)
	pairsOf(t, here.log, "s")
	require.NoError(t, there.loop.AwaitStop(t.Context(), remoteID))
	require.Equal(t, projector.SessionFailed, stateOf(t, there.log, remoteID).Status)
}

// aborts counts the aborts of a transport.
type aborts struct {
	remote.Transport
	told atomic.Int32
	err  error
}

func (a *aborts) Abort(ctx context.Context, session, reason string) error {
	a.told.Add(1)
	if a.err != nil {
		return a.err
	}
	return a.Transport.Abort(ctx, session, reason)
}

// via has the agent reach its server through a transport.
func via(a agentloop.Agent, wrap func(remote.Transport) remote.Transport) agentloop.Agent {
	a.RemoteAgents = slices.Clone(a.RemoteAgents)
	a.RemoteAgents[0].Transport = wrap(a.RemoteAgents[0].Transport)
	return a
}

func TestARemoteAgentIsToldToAbortOnce(t *testing.T) {
	t.Parallel() // most of it is waiting
	for name, c := range map[string]struct {
		dies bool
		err  error
	}{
		"by who follows it":             {},
		"by who has not followed it":    {dies: true},
		"though it can't be reached":    {dies: true, err: errors.New("no route to it")},
		"though its follower could not": {err: errors.New("no route to it")},
	} {
		t.Run(name, func(t *testing.T) {
			m := newGated(answering(longAnswer))
			there := newServer(t, m)
			transport := &aborts{err: c.err}
			agent := via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport {
				transport.Transport = tr
				return transport
			})
			here := newRig(t, agent)
			here.start("s", "caller", "go")
			here.followed(m)
			if c.dies {
				here.loop.Stop()
				here = newRigOn(t, here.log, agent)
			}
			require.NoError(t, here.loop.Abort(t.Context(), "s", "enough"))
			require.Equal(t, agentloop.CodeAborted, here.ended("s").Error.Code)
			require.EqualValues(t, 1, transport.told.Load())
		})
	}
}

// meetings has something happen between the requests of a transport.
type meetings struct {
	remote.Transport
	status         func(remote.Status) remote.Status // nil: as it is
	resume, stream func()                            // before the request; nil: nothing
}

func (m *meetings) Status(ctx context.Context, session string) (remote.Status, error) {
	s, err := m.Transport.Status(ctx, session)
	if err == nil && m.status != nil {
		s = m.status(s)
	}
	return s, err
}

func (m *meetings) Resume(ctx context.Context, req remote.ResumeRequest) (remote.Started, error) {
	if m.resume != nil {
		m.resume()
	}
	return m.Transport.Resume(ctx, req)
}

func (m *meetings) Stream(ctx context.Context, session string, from uint64) iter.Seq2[remote.Event, error] {
	if m.stream != nil {
		m.stream()
	}
	return m.Transport.Stream(ctx, session, from)
}

// A remote run that nobody seemed to drive, and that ends before it is resumed, has its result.
func TestARemoteAgentThatEndsBeforeItIsResumed(t *testing.T) {
	m := newGated(answering(longAnswer))
	there := newServer(t, m)
	first := newRig(t, there.caller(time.Minute))
	first.start("s", "caller", "go")
	first.followed(m)
	first.loop.Stop()

	ended := make(chan struct{})
	go func() {
		defer close(ended)
		there.ended(remoteID)
	}()
	second := newRigOn(t, first.log, via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport {
		return &meetings{
			Transport: tr,
			status: func(s remote.Status) remote.Status { // another node of the server is about to take the run over
				s.IsExecuting = false
				return s
			},
			resume: func() {
				close(m.goOn)
				<-ended
			},
		}
	}))
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	state := second.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Empty(t, state.Messages[2].Error)
	require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
	require.Equal(t, longAnswer, second.said("s", remoteID))
	pairsOf(t, second.log, "s")
}

// A caller that continues before its remote agent has stopped has that continue, too.
func TestARemoteAgentThatIsStillStoppingIsResumedWithItsCaller(t *testing.T) {
	t.Parallel() // most of it is waiting
	works, done := make(chan struct{}), make(chan struct{})
	there := newServer(t, script(call("dig", `{}`), scripted.Turn{ToolCalls: []scripted.Call{
		{ID: "f", Name: "__finish__", Arguments: json.RawMessage(`{"answer":"42"}`)},
	}}), agentloop.Tool{Name: "dig", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
		close(works)
		<-done // an interrupt lets a tool finish
		return "a hole", nil
	}})
	transport := &meetings{}
	here := newRig(t, via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport {
		transport.Transport = tr
		return transport
	}))
	here.start("s", "caller", "go")
	<-works
	require.NoError(t, here.loop.Interrupt(t.Context(), "s", "lunch"))
	require.NoError(t, here.loop.AwaitStop(t.Context(), "s"))
	there.until(remoteID, func(r eventlog.Record) bool { return r.Type == "interrupt_requested" })

	transport.stream = sync.OnceFunc(func() { close(done) })
	_, err := here.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Empty(t, state.Messages[2].Error)
	require.JSONEq(t, `{"answer":"42"}`, string(state.Messages[2].Result))
	pairsOf(t, here.log, "s")
}

// A panic of a transport is its call's failure, as that of a tool is, also while it streams.
func TestATransportThatPanicsFailsTheCallOnly(t *testing.T) {
	there := newServer(t, answering("hi"))
	here := newRig(t, via(there.caller(time.Minute), func(tr remote.Transport) remote.Transport {
		return &meetings{Transport: tr, stream: func() { panic("a mistake") }}
	}))
	here.start("s", "caller", "go")
	state := here.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, agentloop.CodeToolFailed, state.Messages[2].ErrorCode)
	require.NotContains(t, state.Messages[2].Error, "a mistake")
	requireDispatchFailed(t, here)
	pairsOf(t, here.log, "s")
}
