package worklist_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// household is a boss whose sub-agent outlives its turn: that one asks its
// client, and then answers, if it does not hang.
func household(hangs bool) []agentloop.Agent {
	spawn := scripted.Call{ID: "1", Name: "companion__spawnAgent", Arguments: json.RawMessage(`{"agent":"kid","name":"k","initialMessage":"go"}`)}
	kid := scripted.New([]scripted.Turn{
		{ToolCalls: []scripted.Call{{ID: "c", Name: "ask"}}}, {Text: "I am back."},
	}, nil)
	return []agentloop.Agent{
		{
			Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}},
			Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{spawn}}, {Text: "done"}}, nil),
		},
		{
			Name: "kid", Tools: []agentloop.Tool{{Name: "ask", Client: true}},
			Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
				if hangs && req.Messages[len(req.Messages)-1].Role != model.RoleUser {
					<-ctx.Done()
					return model.Answer{}, ctx.Err()
				}
				return kid.Generate(ctx, req, emit)
			}),
		},
	}
}

// answeredChild brings a session to where the boss's turn is finished and the
// child's call is answered: it has work, and stands on no list.
func (s *site) answeredChild(n *node) {
	s.t.Helper()
	s.start(n, "s", "boss")
	s.until("s", func(t *projector.Tree) bool {
		kid := t.Get("s-agent-k")
		return completed(t) && kid != nil && kid.Suspended()
	})
	require.Eventually(s.t, func() bool { return s.listed() == 0 }, within, 10*time.Millisecond)
	got, err := n.loop.Submit(s.t.Context(), engine.Submission{
		SessionID: "s", ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage(`"here"`),
	})
	require.NoError(s.t, err)
	require.Equal(s.t, engine.SubmitAccepted, got.Status)
}

func childDone(t *projector.Tree) bool {
	return t.Get("s-agent-k").Status == projector.SessionCompleted
}

// A resume that appends nothing still gives the tree its place on the list.
func TestAChildThatOutlivesItsParentIsResumedThroughAnyNode(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.answeredChild(s.node("works", household(false)...))
	front := s.node("front")
	_, err := s.resume(front, engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	s.until("s", childDone)
}

func TestAChildThatOutlivesItsParentOutlivesItsNode(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newSite(t)
	a := s.node("a", household(true)...)
	s.answeredChild(a)
	s.node("b", household(false)...)
	_, err := s.resume(a, engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	s.until("s", func(t *projector.Tree) bool { return t.Get("s-agent-k").Running() })
	a.die()
	s.until("s", childDone)
}

// What is being driven is stopped also while the list is out of reach.
func TestAbortNeedsNoList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.node("a", slow())
	s.start(a, "s", "slow")
	s.until("s", func(t *projector.Tree) bool { return t.Claim != nil && t.Claim.Spoke })
	require.NoError(t, s.js.DeleteStream(t.Context(), worklist.Stream)) // stands for one without a leader
	require.NoError(t, a.loop.Abort(t.Context(), "s", ""))
	require.NoError(t, a.loop.AwaitStop(t.Context(), "s"))
	require.ErrorIs(t, a.list.Forget(t.Context(), "s"), eventlog.ErrOutcomeUnknown, "an erasure is to be repeated")
}

// A ticket that another node has removed is gone, and no failure.
func TestATicketIsRemovedTwice(t *testing.T) {
	t.Parallel()
	list := newSite(t).node("a").list
	ticket, err := list.Announce(t.Context(), "elsewhere", "s")
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, list.Remove(t.Context(), []uint64{ticket}))
	}
}

// A request that the list does not take is refused, and changes nothing.
func TestWithoutTheListNothingBegins(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newSite(t)
	a := s.node("a", slow())
	require.NoError(t, s.js.DeleteStream(t.Context(), worklist.Stream))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := a.loop.Start(ctx, engine.StartRequest{SessionID: "s", AgentType: "slow", Messages: []agentloop.Input{{Content: "go"}}})
	require.ErrorIs(t, err, eventlog.ErrUnavailable)
	_, err = s.log.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// builder is an agent whose tool takes its time.
func builder(began chan<- struct{}) agentloop.Agent {
	build := agentloop.NewTool("build", "", func(ctx context.Context, _ *agentloop.Call, _ struct{}) (string, error) {
		select {
		case began <- struct{}{}:
		case <-ctx.Done(): // nobody waits for it
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
	return agentloop.Agent{
		Name: "builder", Tools: []agentloop.Tool{build},
		Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{ID: "c", Name: "build"}}}, {Text: "built"}}, nil),
	}
}

// Nodes that are stopped in an orderly way say so: a tool call that outlasts
// many restarts is no poison.
func TestOrderlyRestartsAreNoDeaths(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newSite(t)
	for i := range agentloop.MaxSilentClaims + 3 {
		began := make(chan struct{}, 1)
		n := s.node(fmt.Sprint("n", i), builder(began))
		if i == 0 {
			s.start(n, "s", "builder")
		}
		select {
		case <-began:
		case <-time.After(within):
			require.Fail(t, "the call is not run again", "%+v", s.state("s").Error)
		}
		n.list.Leave()
		n.stop()
	}
	require.Nil(t, s.state("s").Error)
}

// orphan writes a session into the log that as many nodes have claimed and lost,
// and puts it on the list.
func (s *site) orphan(q *worklist.Worklist, session, agent string, claims int) {
	s.t.Helper()
	_, err := q.Announce(s.t.Context(), agent, session)
	require.NoError(s.t, err)
	base := fact.Base{SessionID: session, Timestamp: 1}
	facts := []fact.Fact{
		&fact.SessionCreated{AgentType: agent, Base: base}, &fact.UserMessage{Content: "go", Base: base},
		&fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: base},
	}
	for i := range claims {
		facts = append(facts, &fact.RunClaimed{RunID: "r", Node: fmt.Sprint("dead", i), Attempt: i + 1, Base: base})
	}
	entries := make([]eventlog.Entry, len(facts))
	for i, f := range facts {
		entries[i], err = eventlog.NewFact(session, f, eventlog.Labels{Run: "r"})
		require.NoError(s.t, err)
		if f.Type() == "run_claimed" {
			entries[i].Writer, entries[i].Ordinal = fmt.Sprint("w", i), 1
		}
	}
	_, err = s.log.Append(s.t.Context(), session, 0, entries)
	require.NoError(s.t, err)
}

// Of trees that processes have died with, a node takes up one, and when that
// turns out to be harmless, more. One that waits for its turn can be stopped.
func TestSuspectsAreTakenUpOneByOne(t *testing.T) {
	t.Parallel()
	for began := time.Now(); !suspectsWait(t); {
		require.Less(t, time.Since(began), within, "none waits for the first one")
	}
}

// harmless is when a suspect that has not killed its node is taken to be so.
const harmless = 2 * time.Second

// suspectsWait sees suspects taken up one by one. It reports false if the
// machine stood still for so long that none of them had to wait any more.
func suspectsWait(t *testing.T) bool {
	t.Helper()
	s := newSite(t)
	first := s.node("first")
	const all = 6
	for i := range all {
		s.orphan(first.list, fmt.Sprint("s", i), "builder", 3)
	}
	began, asked, speak := make(chan struct{}, all), make(chan struct{}, all), make(chan struct{})
	agent := builder(began)
	answer := agent.Model
	agent.Model = modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		asked <- struct{}{}
		select {
		case <-speak: // till then nobody can tell whether it is harmless
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		return answer.Generate(ctx, req, emit)
	})
	looks := time.Now()
	n := s.node("n", agent)
	<-asked
	waiting := -1
	for i := range all {
		require.Eventually(t, func() bool { return n.loop.Live(fmt.Sprint("s", i)) }, within, time.Millisecond)
		if s.state(fmt.Sprint("s", i)).Claim.Node != "n" {
			waiting = i
		}
	}
	if waiting < 0 {
		require.Greater(t, time.Since(looks), harmless, "they wait for the first one")
		return false
	}
	require.NoError(t, n.loop.Abort(t.Context(), fmt.Sprint("s", waiting), ""))
	require.NoError(t, n.loop.AwaitStop(t.Context(), fmt.Sprint("s", waiting)))
	close(speak)
	for range all - 1 { // without the one that was stopped
		select {
		case <-began:
		case <-time.After(within):
			require.Fail(t, "they wait for ever")
		}
	}
	return true
}
