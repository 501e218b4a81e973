package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
)

// speaker says a word, after it was allowed to.
func speaker(name, word string, allowed <-chan struct{}) agentloop.Agent {
	says := scripted.New([]scripted.Turn{{Text: word}}, nil)
	return agentloop.Agent{Name: name, Model: modelFunc(
		func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			select {
			case <-allowed:
				return says.Generate(ctx, req, emit)
			case <-ctx.Done():
				return model.Answer{}, ctx.Err()
			}
		})}
}

func now() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// lastWord is the last message of a session.
func lastWord(t *testing.T, states *snapshot.Store, session string) string {
	t.Helper()
	state, err := states.Head(t.Context(), session)
	require.NoError(t, err)
	return state.Messages[len(state.Messages)-1].Content
}

// TestSetAgents: what is under way ends with the agents that it began with,
// and what begins has the new ones.
func TestSetAgents(t *testing.T) {
	log := memory.New()
	states := snapshot.New(log, nil)
	allowed := make(chan struct{})
	loop, err := engine.New(log, []agentloop.Agent{speaker("a", "old", allowed), speaker("gone", "old", allowed)}, &engine.Options{States: states})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	begin := func(session, agent string) (*engine.Handle, error) {
		return loop.Execute(t.Context(), engine.StartRequest{
			SessionID: session, AgentType: agent, Messages: []agentloop.Input{{Content: "go"}},
		})
	}
	result := func(h *engine.Handle) {
		t.Helper()
		_, err := h.Result(t.Context())
		require.NoError(t, err)
	}
	first, err := begin("first", "a")
	require.NoError(t, err)
	second, err := begin("second", "gone")
	require.NoError(t, err)
	for _, session := range []string{"first", "second"} {
		require.Eventually(t, func() bool {
			state, err := states.Head(t.Context(), session)
			return err == nil && state.Claim != nil
		}, time.Minute, time.Millisecond)
	}

	unused, err := loop.SetAgents([]agentloop.Agent{speaker("a", "new", now()), speaker("b", "new", now())})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, loop.AgentTypes())
	third, err := begin("third", "a")
	require.NoError(t, err)
	result(third)
	require.Equal(t, "new", lastWord(t, states, "third"))
	_, err = begin("fourth", "gone")
	require.ErrorIs(t, err, agentloop.ErrUnknownAgent)
	select {
	case <-unused:
		require.Fail(t, "the old ones are in use")
	default:
	}

	close(allowed)
	result(first)
	result(second)
	<-unused
	require.Equal(t, "old", lastWord(t, states, "first"))
	require.Equal(t, "old", lastWord(t, states, "second"))

	again, err := begin("first", "a")
	require.NoError(t, err)
	result(again)
	require.Equal(t, "new", lastWord(t, states, "first"))
}

// TestSetAgentsThatCannotBe: one that is ill-defined leaves all as they were.
func TestSetAgentsThatCannotBe(t *testing.T) {
	loop, err := engine.New(memory.New(), []agentloop.Agent{speaker("a", "old", now())}, nil)
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	good := speaker("b", "new", now())
	for _, bad := range []agentloop.Agent{{Name: "no-model"}, good, {Name: "c", Model: good.Model, SubAgents: []agentloop.SubAgent{{Agent: "nobody"}}}} {
		_, err := loop.SetAgents([]agentloop.Agent{good, bad})
		require.Error(t, err)
		require.Equal(t, []string{"a"}, loop.AgentTypes())
	}
	unused, err := loop.SetAgents(nil)
	require.NoError(t, err)
	<-unused
	require.Empty(t, loop.AgentTypes())
}
