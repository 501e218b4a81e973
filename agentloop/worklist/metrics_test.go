package worklist_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// shows waits until the node's metrics have the lines.
func (n *node) shows(t *testing.T, lines ...string) {
	t.Helper()
	missing := lines
	require.Eventually(t, func() bool {
		families, err := n.reg.Gather()
		require.NoError(t, err)
		var text strings.Builder
		text.WriteByte('\n')
		for _, f := range families {
			_, err := expfmt.MetricFamilyToText(&text, f)
			require.NoError(t, err)
		}
		missing = nil
		for _, line := range lines {
			if !strings.Contains(text.String(), "\n"+line+"\n") {
				missing = append(missing, line)
			}
		}
		return len(missing) == 0
	}, within, 10*time.Millisecond, "%q", missing)
}

// What a dead node leaves is seen to wait, or to have been taken over.
func TestMetrics(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	s := newSite(t)
	a := s.node("a", twoSteps(true))
	b := s.node("b", twoSteps(false))
	s.start(a, "s", "teller")
	s.until("s", speaks)
	a.shows(t, `helixd_runs_driven 1`, `helixd_claims_total 1`)
	b.shows(t, `helixd_queue_nodes 2`, `helixd_takeovers_total 0`)
	a.die()
	s.until("s", completed)
	b.shows(t, `helixd_queue_nodes 1`, `helixd_takeovers_total 1`, `helixd_runs_driven 0`)
	problems, err := testutil.GatherAndLint(b.reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// The list is known to have a tree, and one that a node takes up at once is not said to wait.
func TestMetricsOfTheList(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.node("a", twoSteps(true))
	s.start(a, "s", "teller")
	s.until("s", speaks)
	a.die()
	s.node("other", household(false)...).shows(t, `helixd_queue_trees 1`, `helixd_queue_unheld_trees 0`)
	again := s.node("a again", twoSteps(false))
	require.Zero(t, again.value("helixd_queue_unheld_trees")) // of its first look
	again.shows(t, `helixd_takeovers_total 1`)
	s.until("s", completed)
}
