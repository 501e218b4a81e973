package jetstream_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// copies yields n records of a session, every second sequence.
func copies(session string, n int) func(func(eventlog.Copied, error) bool) {
	return func(yield func(eventlog.Copied, error) bool) {
		for i := range n {
			entry := logtest.Text(session, fmt.Sprint(i))
			entry.Writer, entry.Ordinal = "w", uint64(i+1)
			if !yield(eventlog.Copied{Record: eventlog.Record{Sequence: uint64(2*i + 1), Time: time.Unix(1, 0).UTC(), Entry: entry}}, nil) {
				return
			}
		}
	}
}

// TestRestoreOnThreeServers: restored streams are replicated like others.
func TestRestoreOnThreeServers(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	nodes := threeNodes(t)
	var all [3]opened
	var wg sync.WaitGroup
	for i := range nodes {
		wg.Go(func() {
			if all[i].srv, all[i].err = embed.Start(t.Context(), nodes[i]); all[i].err == nil {
				all[i].nc, all[i].err = all[i].srv.Connect()
			}
		})
	}
	wg.Wait()
	for i := range all {
		defer all[i].close()
		require.NoError(t, all[i].err)
	}
	r, err := restore.Begin(t.Context(), all[0].nc, restore.Options{Ends: []uint64{1000, 1000}, Replicas: 3})
	require.NoError(t, err)
	for _, session := range []string{"a", "b", "c"} {
		n, err := r.Session(t.Context(), session, 0, copies(session, 300))
		require.NoError(t, err)
		require.Equal(t, 300, n)
	}
	_, err = jetstream.Open(t.Context(), all[1].nc, &jetstream.Options{Replicas: 3})
	require.ErrorIs(t, err, restore.ErrRestoring)
	require.NoError(t, r.Finish(t.Context()))
	require.NoError(t, r.Close())
	for i := range all {
		log, err := jetstream.Open(t.Context(), all[i].nc, &jetstream.Options{Replicas: 3})
		require.NoError(t, err)
		defer log.Close()
		require.Equal(t, 2, log.Info().Partitions)
		for _, session := range []string{"a", "b", "c"} {
			require.Len(t, recordsOf(t, log, session, 0, 0), 300+i)
			head, err := log.Head(t.Context(), session)
			require.NoError(t, err)
			last, err := eventlog.AppendOnce(t.Context(), log, session, fmt.Sprint("more ", i), head, []eventlog.Entry{logtest.Text(session, "more")})
			require.NoError(t, err)
			require.Greater(t, last, uint64(1000+restore.SequencesBehind))
		}
	}
}

// TestRestoreRefuses records that no log can have.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{})
	_, err := restore.Begin(t.Context(), nc, restore.Options{Ends: []uint64{10, 1 << 63}})
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	r, err := restore.Begin(t.Context(), nc, restore.Options{Ends: []uint64{10}})
	require.NoError(t, err)
	defer r.Close()
	_, err = r.Session(t.Context(), "behind the end", 0, copies("s", 6))
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	_, err = r.Session(t.Context(), "below the floor", 1, copies("s", 3))
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	_, err = r.Session(t.Context(), "", 0, copies("s", 3))
	require.Error(t, err)
	_, err = r.Session(t.Context(), "twice", 0, copies("twice", 3))
	require.NoError(t, err)
	_, err = r.Session(t.Context(), "twice", 0, copies("twice", 3))
	require.Error(t, err)
}
