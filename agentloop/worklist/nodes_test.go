package worklist_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// slow is an agent that does not end by itself.
func slow() agentloop.Agent {
	return agentloop.Agent{Name: "slow", Model: modelFunc(
		func(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
			if err := emit(model.TextDelta{Text: "Well"}); err != nil {
				return model.Answer{}, err
			}
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		})}
}

func executing(t *testing.T, s *site, n *node, session string) bool {
	t.Helper()
	return n.loop.Executing(t.Context(), s.state(session))
}

// A node that hosts no agent takes requests for those of others.
func TestAnyNodeTakesRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.node("works", twoSteps(false), slow())
	front := s.node("front")
	s.start(front, "s", "teller")
	state := s.until("s", completed)
	require.Equal(t, "works", state.Claim.Node)
	require.JSONEq(t, `{"begun":true}`, s.state("s").CustomState.String(), "the initial state of an agent that is elsewhere")

	_, err := s.begin(front, "x", "nobody")
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)

	begun := s.start(front, "long", "slow")
	s.until("long", func(t *projector.Tree) bool { return t.Claim != nil })
	require.Eventually(t, func() bool { return executing(t, s, front, "long") }, within, time.Millisecond)
	again, err := s.resume(front, engine.ResumeRequest{SessionID: "long"})
	require.NoError(t, err)
	require.Equal(t, begun.RunID, again.RunID, "it runs already")
	_, err = s.resume(front, engine.ResumeRequest{SessionID: "long", Messages: []agentloop.Input{{Content: "and?"}}})
	require.ErrorIs(t, err, agentloop.ErrAlreadyRunning)

	require.NoError(t, front.loop.Interrupt(t.Context(), "long", ""))
	require.NoError(t, front.loop.AwaitStop(t.Context(), "long"))
	require.Equal(t, projector.SessionInterrupted, s.state("long").Status)
	require.Eventually(t, func() bool { return !executing(t, s, front, "long") }, within, time.Millisecond)

	_, err = s.resume(front, engine.ResumeRequest{SessionID: "long"})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return executing(t, s, front, "long") }, within, time.Millisecond)
	require.NoError(t, front.loop.Abort(t.Context(), "long", ""))
	require.NoError(t, front.loop.AwaitStop(t.Context(), "long"))
	require.Equal(t, projector.SessionFailed, s.state("long").Status)
	require.Equal(t, []string{"works", "works"}, s.claimants("long"), "nobody took it over")
}

// A call that waits is answered through one node, resumed through another, and
// continues at the one that hosts the agent.
func TestAnAnswerThroughAnyNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	asks := twoSteps(false)
	asks.Tools[0].RequireApproval = agentloop.AlwaysApprove
	works := s.node("works", asks)
	s.start(works, "s", "teller")
	s.until("s", func(t *projector.Tree) bool { return t.Suspended() })
	require.Eventually(t, func() bool { return s.listed() == 0 }, within, 10*time.Millisecond, "waiting costs nothing, not even a place on the list")
	front := s.node("front")
	answer, err := front.loop.Submit(t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "c", Kind: fact.SubmitApproval, Approved: true,
	})
	require.NoError(t, err)
	require.Equal(t, engine.SubmitAccepted, answer.Status)
	_, err = s.resume(front, engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	require.JSONEq(t, `"It rains."`, string(s.until("s", completed).Output))
}

// gated is an agent whose answers wait.
func gated(may <-chan struct{}, a agentloop.Agent) agentloop.Agent {
	quick := a.Model
	a.Model = modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		select {
		case <-may:
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		return quick.Generate(ctx, req, emit)
	})
	return a
}

// A node that drains ends the step, and another one begins the next: nothing
// is truncated, and no client notices.
func TestADrainingNodeHandsOver(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	may := make(chan struct{})
	a := s.node("a", gated(may, twoSteps(false)))
	s.start(a, "s", "teller")
	s.until("s", func(t *projector.Tree) bool { return t.Claim != nil })
	b := s.node("b", twoSteps(false))
	require.Eventually(t, func() bool { return a.list.Hosted("teller") }, within, time.Millisecond)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		a.list.Leave()
		a.loop.Drain(t.Context())
	}()
	require.Eventually(t, func() bool { return a.loop.Draining() && !b.list.Hosted("teller") }, within, time.Millisecond)
	close(may)
	s.until("s", completed)
	<-drained
	require.Equal(t, []string{"a", "b"}, s.claimants("s"))
	require.False(t, s.has("s", "truncated"))
	require.False(t, s.has("s", "executor_superseded"))

	// Requests that it still gets are driven elsewhere.
	s.start(a, "late", "teller")
	require.Equal(t, "b", s.until("late", completed).Claim.Node)
}

// A call that waits for a sub-agent until a deadline does not keep a tree on a node that drains.
func TestADrainingNodeHandsOverACallWithADeadline(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	spawn := scripted.Call{ID: "k", Name: "subagent__teller", Arguments: json.RawMessage(`{"message":"go"}`)}
	boss := agentloop.Agent{
		Name: "boss", SubAgents: []agentloop.SubAgent{{Agent: "teller", Timeout: time.Hour}}, // longer than the test waits
		Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{spawn}}, {Text: "done"}}, nil),
	}
	finish := scripted.Call{ID: "f", Name: agentloop.FinishTool, Arguments: json.RawMessage(`{"weather":"rain"}`)}
	kid := twoSteps(false)
	kid.OutputSchema = json.RawMessage(`{"type":"object"}`)
	kid.Model = scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{ID: "c", Name: "look"}}}, {ToolCalls: []scripted.Call{finish}}}, nil)
	may, asked := make(chan struct{}), make(chan struct{}, 1)
	first := gated(may, kid)
	answer := first.Model
	first.Model = modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return answer.Generate(ctx, req, emit)
	})
	a := s.node("a", boss, first)
	s.start(a, "s", "boss")
	<-asked
	b := s.node("b", boss, kid)
	require.Eventually(t, func() bool { return a.list.Hosted("boss") }, within, time.Millisecond)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		a.list.Leave()
		a.loop.Drain(t.Context())
	}()
	require.Eventually(t, func() bool { return a.loop.Draining() && !b.list.Hosted("boss") }, within, time.Millisecond)
	close(may)
	state := s.until("s", completed)
	<-drained
	require.Equal(t, []string{"a", "b"}, s.claimants("s"))
	require.False(t, s.has("s", "truncated"))
	require.JSONEq(t, `{"weather":"rain"}`, string(state.Get("s-sub-k").Output))
}

// With nobody to hand over to, runs come to their end.
func TestALastNodeDrainsToTheEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	may := make(chan struct{})
	a := s.node("a", gated(may, twoSteps(false)))
	s.start(a, "s", "teller")
	s.until("s", func(t *projector.Tree) bool { return t.Claim != nil })
	time.AfterFunc(100*time.Millisecond, func() { close(may) })
	a.list.Leave()
	a.loop.Drain(t.Context())
	require.Equal(t, projector.SessionCompleted, s.state("s").Status)

	b := s.node("b", slow())
	s.start(b, "long", "slow")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	b.loop.Drain(ctx)
	require.Error(t, ctx.Err(), "until the deadline")
	require.True(t, b.loop.Live("long"))
}

// A node whose connection is cut in mid-run, and comes back, finds its runs
// taken over and writes nothing more: the log fences it.
func TestAZombieIsFenced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	zombie := s.node("zombie", twoSteps(true))
	s.start(zombie, "s", "teller")
	s.until("s", speaks)
	zombie.conns[1].Close() // what the others learn of it; its log continues
	s.node("b", twoSteps(false))
	s.until("s", completed)
	require.Eventually(t, func() bool { return !zombie.loop.Live("s") }, within, time.Millisecond)
	require.Equal(t, []string{"zombie", "b"}, s.claimants("s"))
}

// Erasure leaves nothing on the list.
func TestAnErasedSessionLeavesTheList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.node("a", slow())
	s.start(a, "s", "slow")
	s.until("s", func(t *projector.Tree) bool { return t.Claim != nil })
	_, err := a.loop.Admin.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.listed() == 0 && !a.loop.Live("s") }, within, 10*time.Millisecond)
}

// Ids that no subject could hold.
func TestOddNamesOnTheList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.node("n.*> 1", twoSteps(false))
	front := s.node("front")
	s.start(front, "s.*> \u00fc", "teller")
	require.Equal(t, "n.*> 1", s.until("s.*> \u00fc", completed).Claim.Node)
}
