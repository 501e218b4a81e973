package engine_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// treeDeaths is of how many appends, of each sort, a process dies in
// TestATreeSurvivesDeathAtAnyAppend, with HELIX_FULL. With HELIX_ALL_DEATHS set it dies of all.
const treeDeaths = 20

// A process that drives a tree of agents dies at an append; another one continues
// with the log. The user sees what it had seen without that.
func TestATreeSurvivesDeathAtAnyAppend(t *testing.T) {
	for _, pace := range []bool{false, true} {
		calm := newScenario(memory.New(), pace)
		calm.live(t, nil)
		want := calm.outcome(t)
		require.Contains(t, strings.Join(want, ""), "I have run all the way.")
		appends := int(calm.appends.Load())
		t.Logf("paced %v: %d appends", pace, appends)

		rnd := testkit.Random(t)
		for _, stored := range []bool{false, true} {
			deaths := rnd.Perm(appends)
			if os.Getenv("HELIX_ALL_DEATHS") == "" {
				deaths = deaths[:min(testkit.Times(treeDeaths), appends)]
			}
			for _, after := range deaths {
				t.Run(fmt.Sprintf("after %d, stored %v, paced %v", after, stored, pace), func(t *testing.T) {
					t.Parallel()
					dieAndGoOn(t, after, stored, pace, want)
				})
			}
		}
	}
}

// scenario is a household's session over its processes.
type scenario struct {
	store       eventlog.Log
	pace        bool
	interrupted atomic.Bool
	appends     atomic.Int64
}

func newScenario(store eventlog.Log, pace bool) *scenario { return &scenario{store: store, pace: pace} }

// appendCounter counts appends.
type appendCounter struct {
	eventlog.Log
	n *atomic.Int64
}

func (c appendCounter) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	c.n.Add(1)
	return c.Log.Append(ctx, session, expected, entries)
}

// live runs a process until the session is finished, or until it dies.
func (s *scenario) live(t *testing.T, dying *mortal) (f *household, died bool) {
	t.Helper()
	f = newHousehold(&s.interrupted)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log eventlog.Log = appendCounter{Log: s.store, n: &s.appends}
	dead := make(chan struct{})
	if dying != nil {
		log, dead = dying, dying.dead
		go func() {
			select {
			case <-dead:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	if s.pace {
		f.pace = func(m model.Model) model.Model { return paced{Model: m, log: s.store, dead: dead} }
	}
	g := newRigOn(t, log, f.agents()...)
	f.interrupt = func(ctx context.Context) error { return g.loop.Interrupt(ctx, "s", "wait a moment") }
	err := user{log: s.store, loop: g.loop}.play(ctx)
	select {
	case <-dead:
		died = true
	default:
		require.NoError(t, err)
	}
	g.loop.Stop()
	return f, died
}

func dieAndGoOn(t *testing.T, after int, stored, pace bool, want []string) {
	s := newScenario(memory.New(), pace)
	dying := &mortal{Log: s.store, lastStored: stored, dead: make(chan struct{})}
	dying.left.Store(int64(after))
	first, died := s.live(t, dying)
	before, err := user{log: s.store}.state(t.Context())
	require.NoError(t, err)
	if died {
		second, _ := s.live(t, nil)
		first.check(t, second, before)
	}
	got := s.outcome(t)
	for i, line := range want {
		require.Equal(t, line, got[min(i, len(got)-1)])
	}
	require.Len(t, got, len(want))
}

// check compares what two processes did, with the state between them.
func (h *household) check(t *testing.T, second *household, before *projector.Tree) {
	t.Helper()
	for _, s := range before.Sessions() {
		if s.Turn != nil && s.Turn.Recalled {
			for _, id := range s.RecalledIDs() {
				_, query, _ := strings.Cut(id, " of ")
				require.Zero(t, second.recalled[s.SessionID+" "+query], "what %s recalled was recorded", s.SessionID)
			}
		}
		answers := 0
		for _, m := range s.Messages {
			switch m.Role {
			case projector.RoleAssistant:
				require.Zero(t, second.asked[turnOf{s.AgentType, answers}], "answer %d of %s was recorded", answers, s.AgentType)
				answers++
			case projector.RoleTool:
				require.Zero(t, second.executed[m.ToolCallID], "call %s had its result", m.ToolCallID)
			}
		}
	}
	for id, keys := range h.keys {
		all := maps.Clone(keys)
		maps.Copy(all, second.keys[id])
		require.Len(t, all, 1, "idempotency key of %s", id)
	}
}

// outcome is what must not depend on deaths: the states of all sessions, and
// the effective content of each agent's calls, line by line.
func (s *scenario) outcome(t *testing.T) []string {
	t.Helper()
	tree, err := user{log: s.store}.state(t.Context())
	require.NoError(t, err)
	resyncs, markers := 0, 0
	var records []eventlog.Record
	for r, err := range s.store.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		records = append(records, r)
		switch r.Type {
		case "stream_resync":
			resyncs++
		case "truncated":
			markers++
		}
	}
	require.Equal(t, markers, resyncs, "clients are notified of truncations, and of nothing else")
	pairsOf(t, s.store, "s")
	requireStepsEnd(t, records)
	require.Empty(t, tree.Parked)
	require.Empty(t, tree.Orphans())
	var lines []string
	for _, one := range tree.Sessions() {
		forgetWaits(one.Usage)
		lines = append(lines, one.SessionID+" "+outcome(t, &projector.Tree{Session: *one}))
	}
	said := content(t, s.store, "s")
	for _, key := range slices.Sorted(maps.Keys(said)) {
		lines = append(lines, key+":\n"+said[key])
	}
	return lines
}

// forgetWaits drops how long calls have waited, but not that they have.
func forgetWaits(u projector.Usage) {
	for tool, amount := range u.Recorded[fact.ClientToolWait] {
		amount.Sum = 0
		u.Recorded[fact.ClientToolWait][tool] = amount
	}
}
