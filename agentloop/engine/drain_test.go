package engine_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// onlyNode is a work list on which no other node hosts an agent.
type onlyNode struct{ agentloop.Worklist }

func (onlyNode) Announce(context.Context, string, string) (uint64, error) { return 1, nil }
func (onlyNode) Remove(context.Context, []uint64) error                   { return nil }
func (onlyNode) Holds(context.Context, string, string, uint64) bool       { return false }
func (onlyNode) Lighter(string, int) string                               { return "" }
func (onlyNode) Hosted(string) bool                                       { return false }
func (onlyNode) Wake(string, string, string)                              {}

// A suspected tree that waits for its turn when the node drains finishes here if no other
// node could take it up, with a work list or without one.
func TestASuspectWaitsWhileItsOnlyNodeDrains(t *testing.T) {
	for name, list := range map[string]agentloop.Worklist{"without a work list": nil, "with a work list": onlyNode{}} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { drainsWithSuspects(t, list) }) })
	}
}

func drainsWithSuspects(t *testing.T, list agentloop.Worklist) {
	log, may := memory.New(), make(chan struct{})
	node := func(name string) *engine.Loop {
		loop, err := engine.New(log, []agentloop.Agent{
			{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}}, Model: script(
				scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)}},
				scripted.Turn{Text: "done"})},
			{Name: "kid", Model: saysWhen("I am back.", may)},
		}, &engine.Options{Node: name, Worklist: list})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		return loop
	}
	sessions := []string{"s1", "s2"}
	first := node("first")
	for _, s := range sessions {
		_, err := first.Start(t.Context(), engine.StartRequest{SessionID: s, AgentType: "boss", Messages: []agentloop.Input{{Content: "go"}}})
		require.NoError(t, err)
	}
	synctest.Wait()
	first.Stop()
	loop := node("n")
	for _, s := range sessions {
		for _, dead := range []string{"dead1", "dead2"} {
			logtest.AppendNext(t, log, s, logtest.Fact(s, &fact.RunClaimed{
				RunID: "none", Node: dead, Attempt: 1, Base: fact.Base{SessionID: s, Timestamp: 1},
			}))
		}
		// The root's turn is finished: a resume begins no run, which would clear the suspicion.
		_, err := loop.Resume(t.Context(), engine.ResumeRequest{SessionID: s})
		require.NoError(t, err)
	}
	synctest.Wait() // one is driven on probation, the other one waits
	require.Equal(t, len(sessions), loop.Load())
	claimed := 0
	for _, s := range sessions {
		if stateOf(t, log, s).Claim.Node == "n" {
			claimed++
		}
	}
	require.Equal(t, 1, claimed)

	drained := make(chan struct{})
	go func() {
		defer close(drained)
		loop.Drain(t.Context())
	}()
	synctest.Wait()
	require.Equal(t, len(sessions), loop.Load(), "none is given away")
	close(may)
	<-drained
	for _, s := range sessions {
		require.Equal(t, projector.SessionCompleted, stateOf(t, log, s).Get(s+"-agent-k").Status)
	}
}

// breaksOff begins a run whose answer can't be stored, since the log is down, while its node
// drains. It calls whileDown when that is so.
func breaksOff(t *testing.T, list agentloop.Worklist, whileDown func(*unreachable)) *unreachable {
	t.Helper()
	log, may := &unreachable{Log: memory.New()}, make(chan struct{})
	loop, err := engine.New(log, []agentloop.Agent{{Name: "a", Model: saysWhen("Done.", may)}}, &engine.Options{Worklist: list})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)
	synctest.Wait()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		loop.Drain(t.Context())
	}()
	synctest.Wait() // for the answer
	log.down.Store(true)
	close(may)
	whileDown(log)
	<-drained
	synctest.Wait() // for what follows a drain
	return log
}

// A run that breaks off while its node drains finishes here if no other node hosts its agent.
func TestADrainingNodeTakesUpWhatBrokeOff(t *testing.T) {
	for name, list := range map[string]agentloop.Worklist{"without a work list": nil, "with a work list": onlyNode{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := breaksOff(t, list, func(log *unreachable) {
					synctest.Wait() // the answer was not stored
					log.down.Store(false)
				})
				require.Equal(t, projector.SessionCompleted, stateOf(t, log, "s").Status)
			})
		})
	}
}

// A run that breaks off while its node drains is left to another node that hosts its agent.
func TestADrainingNodeGivesAwayWhatBrokeOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := &woken{}
		log := breaksOff(t, list, func(*unreachable) {})
		require.True(t, stateOf(t, log.Log, "s").Running())
		require.Equal(t, []string{"s"}, list.sessions)
	})
}

// woken is a work list on which another node hosts all agents. It keeps which sessions that node
// is to take up.
type woken struct {
	otherNode
	sessions []string
}

func (w *woken) Wake(_, _, session string) { w.sessions = append(w.sessions, session) }

// otherNode is a work list on which another node hosts all agents.
type otherNode struct{ onlyNode }

func (otherNode) Hosted(string) bool { return true }

// A model call is not repeated before the time for which its provider asks.
func TestAProviderSaysWhenACallMayBeRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var calls []time.Duration
		busy := modelFunc(func(context.Context, model.Request, func(model.Event) error) (model.Answer, error) {
			calls = append(calls, time.Since(began))
			after := []time.Duration{time.Minute, time.Second, 0, 0}[len(calls)-1]
			return model.Answer{}, &model.Error{Code: model.CodeRateLimited, Message: "busy", Retryable: true, RetryAfter: after}
		})
		loop, err := engine.New(memory.New(), []agentloop.Agent{{Name: "a", Model: busy}}, &engine.Options{RetryDelay: 2 * time.Second})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, []time.Duration{0, time.Minute, time.Minute + 4*time.Second, time.Minute + 12*time.Second}, calls,
			"the pause doubles, and is longer if the provider asks for it")
	})
}

// A pause before a model call is repeated does not keep a tree on a node that drains.
func TestADrainingNodeDoesNotBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memory.New()
		failing := modelFunc(func(context.Context, model.Request, func(model.Event) error) (model.Answer, error) {
			return model.Answer{}, &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true}
		})
		loop, err := engine.New(log, []agentloop.Agent{{Name: "a", Model: failing}}, &engine.Options{Worklist: otherNode{}, RetryDelay: time.Minute})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, 1, stateOf(t, log, "s").Turn.Step.Attempts)
		began := time.Now()
		loop.Drain(t.Context())
		require.Zero(t, time.Since(began))
		state := stateOf(t, log, "s")
		require.Equal(t, 1, state.Turn.Step.Attempts)
		require.True(t, state.Running())
	})
}

// Each caller that drains a node learns that its runs have left.
func TestEveryDrainEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		may := make(chan struct{})
		loop, err := engine.New(memory.New(), []agentloop.Agent{{Name: "a", Model: saysWhen("Done.", may)}}, nil)
		require.NoError(t, err)
		defer loop.Stop()
		_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
		require.NoError(t, err)
		synctest.Wait()
		var drains sync.WaitGroup
		for range 3 {
			drains.Go(func() { loop.Drain(t.Context()) })
		}
		synctest.Wait()
		close(may)
		drains.Wait()
		require.Zero(t, loop.Load())
	})
}
