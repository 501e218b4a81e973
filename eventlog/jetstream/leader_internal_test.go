package jetstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestWhatRemovesAsksTheLeader: a replica that lags answers a direct get
// without the last records. An erasure would leave those, and a purge would
// take what no segment has. So neither may depend on direct gets, which are
// switched off here.
func TestWhatRemovesAsksTheLeader(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	var entries []eventlog.Entry
	for i := range 3 {
		entries = append(entries, textEntry(i))
	}
	last, err := l.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	require.NoError(t, l.Seal(t.Context(), "s"))
	for _, name := range []string{layout.LogStream(0), layout.SegmentStream(0), layout.BlobStream} {
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

// TestAnErasureGoesOnWithTheLeaderOnly: a server that leads a stream no more may lack a segment
// that the leader has. An erasure keeps its fence until the leader has said that there is none.
func TestAnErasureGoesOnWithTheLeaderOnly(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	appended(t, l, "s", 0, textEntries("x", 3))
	require.NoError(t, l.Seal(t.Context(), "s"))
	unknown := true
	cut := openHooked(t, l.nc, func(ctx context.Context, point string, do func(context.Context) error) error {
		if unknown && point == "$JS.API.STREAM.INFO."+layout.SegmentStream(0) {
			return errors.New("no answer")
		}
		return do(ctx)
	})
	cut.opts.Replicas = 3
	_, err := cut.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrUnavailable)
	_, err = l.fenced(t.Context(), "s")
	require.NoError(t, err)
	unknown = false
	_, err = cut.FinishErasures(t.Context(), true)
	require.NoError(t, err)
	_, err = l.fenced(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	requireNothing(t, l, "s")
}
