package jetstream

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// TestWhatRemovesAsksTheLeader: a replica that lags answers a direct get
// without the last records. An erasure would leave those, and a purge would
// take what no segment has. So neither may depend on direct gets, which are
// switched off here.
func TestWhatRemovesAsksTheLeader(t *testing.T) {
	l := openLog(t, nil)
	var entries []eventlog.Entry
	for i := range 3 {
		entries = append(entries, textEntry(i))
	}
	last, err := l.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	require.NoError(t, l.Seal(t.Context(), "s"))
	for _, name := range []string{streamName(0), segmentStream(0), blobStream} {
		s, err := l.js.Stream(t.Context(), name)
		require.NoError(t, err)
		config := s.CachedInfo().Config
		config.AllowDirect = false
		_, err = l.js.UpdateStream(t.Context(), config)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	stream, subject, err := l.place("s")
	require.NoError(t, err)
	for from, want := range map[uint64]uint64{1: last - 2, last: last, last + 1: 0} {
		got, err := l.firstFrom(ctx, stream, subject, from)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	e, err := l.Erase(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, 3, e.Records)
	requireNothing(t, l, "s")
}
