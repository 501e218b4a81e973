package worklist_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Runs that are all begun at one node are spread over those that host the agent, before
// they begin to do anything.
func TestNewRunsAreSpread(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.node("a", slow()), s.node("b", slow())
	s.node("front") // it hosts none
	require.Eventually(t, func() bool { return a.list.Hosted("slow") && b.list.Hosted("slow") }, within, time.Millisecond)
	const runs = 40
	for i := range runs {
		s.start(a, fmt.Sprint("s", i), "slow")
	}
	for i := range runs {
		s.until(fmt.Sprint("s", i), func(t *projector.Tree) bool { return t.Claim != nil })
	}
	for i := range runs {
		require.Len(t, s.claimants(fmt.Sprint("s", i)), 1, "it is handed over before it is claimed")
	}
	require.Equal(t, runs, a.loop.Load()+b.loop.Load())
	require.GreaterOrEqual(t, b.loop.Load(), runs/3)
	require.GreaterOrEqual(t, a.loop.Load(), runs/3)
}

// stepping is twoSteps whose answers wait for a signal each.
func stepping(first, second <-chan struct{}) agentloop.Agent {
	a := twoSteps(false)
	quick := a.Model
	a.Model = modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		may := first
		if len(req.Messages) > 1 {
			may = second
		}
		select {
		case <-may:
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		return quick.Generate(ctx, req, emit)
	})
	return a
}

// A node that joins gets its share of the runs that are under way, each between two
// steps: nothing is discarded.
func TestANodeThatJoinsGetsItsShare(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first, second := make(chan struct{}), make(chan struct{})
	a := s.node("a", stepping(first, second))
	const runs = 30
	for i := range runs {
		s.start(a, fmt.Sprint("s", i), "teller")
	}
	for i := range runs {
		s.until(fmt.Sprint("s", i), func(t *projector.Tree) bool { return t.Claim != nil })
	}
	claimed := time.Now()
	b := s.node("b", stepping(first, second))
	require.Eventually(t, func() bool { // a node drives a tree for a second at least
		return a.list.Hosted("teller") && time.Since(claimed) > 1100*time.Millisecond
	}, within, time.Millisecond)
	close(first)
	require.Eventually(t, func() bool { return b.loop.Load() >= runs/3 && a.loop.Load()+b.loop.Load() == runs }, within, 10*time.Millisecond)
	close(second)
	moved := 0
	for i := range runs {
		session := fmt.Sprint("s", i)
		s.until(session, completed)
		require.False(t, s.has(session, "truncated"))
		moved += len(s.claimants(session)) - 1
	}
	require.GreaterOrEqual(t, moved, runs/3)
	require.Less(t, moved, runs)
}

// ghost announces a node that hosts the agent and drives nothing, until the function is
// called: a process that has died and whose successor has its place, or one that has begun to
// leave. It takes nothing up.
func ghost(t *testing.T, s *site, agent string) (vanish func()) {
	t.Helper()
	nc := s.connect()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			nc.Publish("helix.node.all", fmt.Appendf(nil, `{"node":"ghost","instance":"1","agents":[%q],"state":"here","driven":0}`, agent))
			eventlog.Sleep(ctx, 100*time.Millisecond)
		}
	}()
	return func() { cancel(); <-ended; nc.Close() }
}

// A run that was handed to a node which does not take it up, though it seems to live,
// continues at the node that has handed it over, long before the list is read again.
func TestAHandoverThatNobodyTakesComesBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.neverScan = true
	a := s.node("a", slow())
	vanish := ghost(t, s, "slow")
	defer vanish()
	require.Eventually(t, func() bool { return a.list.Hosted("slow") }, within, time.Millisecond)
	const runs = 12
	for i := range runs {
		s.start(a, fmt.Sprint("s", i), "slow")
	}
	require.Eventually(t, func() bool { return a.loop.Load() < runs }, within, time.Millisecond, "some are handed over")
	for i := range runs {
		require.Equal(t, "a", s.until(fmt.Sprint("s", i), func(t *projector.Tree) bool { return t.Claim != nil }).Claim.Node)
	}
}

// A node that leaves wakes one node after the other for the runs that it has handed over, until
// one has taken them up.
func TestALeavingNodeWakesOneNodeAfterTheOther(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.neverScan = true
	may := make(chan struct{})
	alone := slow()
	alone.Name = "alone"
	a := s.node("a", gated(may, twoSteps(false)), alone)
	const runs = 12
	for i := range runs {
		s.start(a, fmt.Sprint("s", i), "teller")
	}
	s.start(a, "own", "alone") // it drains for long
	for i := range runs {
		s.until(fmt.Sprint("s", i), func(t *projector.Tree) bool { return t.Claim != nil })
	}
	s.until("own", func(t *projector.Tree) bool { return t.Claim != nil })
	s.node("b", twoSteps(false))
	vanish := ghost(t, s, "teller")
	defer vanish()
	require.Eventually(t, func() bool { return len(a.list.Peers()) == 2 }, within, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		a.list.Leave()
		a.loop.Drain(ctx)
	}()
	defer func() { cancel(); <-drained }()
	close(may)
	for i := range runs {
		s.until(fmt.Sprint("s", i), completed)
	}
}
