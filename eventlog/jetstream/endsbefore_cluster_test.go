package jetstream_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

// TestALeaderAloneKnowsNoEnd: a leader that has lost the others may lack records that
// they have acknowledged since. It does not claim that a session ends before a reader's
// cursor.
func TestALeaderAloneKnowsNoEnd(t *testing.T) {
	t.Parallel() // most of it is waiting
	nodes := threeNodes(t)
	all := openAll(t, nodes, jetstream.Options{Partitions: 1, Replicas: 3})
	head, err := eventlog.AppendOnce(t.Context(), all[0].log, "s", "first", 0, []eventlog.Entry{logtest.Text("s", "a")}) // a new cluster may change its leader
	require.NoError(t, err)
	js, err := all[0].nc.JetStream()
	require.NoError(t, err)
	info, err := js.StreamInfo("HELIX_LOG_0")
	require.NoError(t, err)
	leader := slices.IndexFunc(nodes[:], func(o embed.Options) bool { return o.Name == info.Cluster.Leader })
	require.GreaterOrEqual(t, leader, 0)
	ahead := func() (err error) {
		for _, err = range all[leader].log.Read(t.Context(), "s", head+1, 0) {
		}
		return err
	}
	var end *eventlog.CursorAheadError
	require.ErrorAs(t, ahead(), &end)
	require.Equal(t, head, end.Head)
	for i := range all {
		if i != leader {
			all[i].close()
		}
	}
	// For a moment it has just heard from them, and no other server can have acknowledged
	// anything.
	require.Eventually(t, func() bool { return errors.Is(ahead(), eventlog.ErrUnavailable) }, time.Minute, time.Millisecond)
}
