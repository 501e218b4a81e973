package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// tickets is a work list that counts its tickets.
type tickets struct {
	onlyNode
	last    uint64
	removed []uint64
}

func (l *tickets) Announce(context.Context, string, string) (uint64, error) {
	l.last++
	return l.last, nil
}
func (l *tickets) Remove(_ context.Context, tickets []uint64) error {
	l.removed = append(l.removed, tickets...)
	return nil
}

// claimed is a log in which another node claims a session just before the next append.
type claimed struct {
	eventlog.Log
	next atomic.Bool
}

func (c *claimed) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if c.next.CompareAndSwap(true, false) {
		claim, err := eventlog.NewFact(session, &fact.RunClaimed{
			RunID: "none", Node: "other", Attempt: 1, Base: fact.Base{SessionID: session, Timestamp: 1},
		}, eventlog.Labels{Run: "none"})
		if err != nil {
			return 0, err
		}
		claim.Writer, claim.Ordinal = "other", 1
		if _, err := c.Log.Append(ctx, session, expected, []eventlog.Entry{claim}); err != nil {
			return 0, err
		}
	}
	return c.Log.Append(ctx, session, expected, entries)
}

// A node that claims a tree takes its tickets off the list when it has no more work. A request that
// was not appended by then has another ticket.
func TestARequestWhoseTreeIsClaimedMeanwhileIsAnnouncedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, list := &claimed{Log: memory.New()}, &tickets{}
		loop, err := engine.New(log, []agentloop.Agent{{Name: "a", Model: script(
			scripted.Turn{Text: "one"}, scripted.Turn{Text: "two"},
		)}}, &engine.Options{Worklist: list})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		say := []agentloop.Input{{Content: "go"}}
		for turn := range 2 {
			log.next.Store(turn == 1)
			_, err = loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: say})
			require.NoError(t, err)
			synctest.Wait()
		}
		require.Equal(t, projector.SessionCompleted, stateOf(t, log, "s").Status)
		require.True(t, slices.Contains(list.removed, 3), "ticket 2 was given before the claim: %v", list.removed)
	})
}
