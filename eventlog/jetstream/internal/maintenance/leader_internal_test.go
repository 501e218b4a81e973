package maintenance

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestRemovalsAskTheLeader: a replica that lags answers a direct get without the last
// records. An erasure would leave those, and a purge would remove records that no segment
// has. So neither may depend on direct gets, which are switched off here.
func TestRemovalsAskTheLeader(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	var entries []eventlog.Entry
	for i := range 3 {
		entries = append(entries, storetest.TextEntry(i))
	}
	last, err := l.Append(t.Context(), "s", 0, entries)
	require.NoError(t, err)
	require.NoError(t, l.Seal(t.Context(), "s"))
	for _, name := range []string{layout.LogStream(0), layout.SegmentStream(0), layout.BlobStream} {
		s, err := l.JS.Stream(t.Context(), name)
		require.NoError(t, err)
		config := s.CachedInfo().Config
		config.AllowDirect = false
		_, err = l.JS.UpdateStream(t.Context(), config)
		require.NoError(t, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	stream, subject, err := l.Place("s")
	require.NoError(t, err)
	for from, want := range map[uint64]uint64{1: last - 2, last: last, last + 1: 0} {
		got, err := l.FirstFrom(ctx, stream, subject, from)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	e, err := l.Erase(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, 3, e.Records)
	requireNothing(t, l, "s")
}

// TestAnErasureContinuesWithTheLeaderOnly: a server that no longer leads a stream may
// lack a record or a segment that the leader has. An erasure keeps its tombstone until the
// leader has answered that there is none.
func TestAnErasureContinuesWithTheLeaderOnly(t *testing.T) {
	t.Parallel()
	for _, stream := range []string{layout.SegmentStream(0), layout.LogStream(0)} {
		l := openLog(t, link.Options{})
		storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 3))
		require.NoError(t, l.Seal(t.Context(), "s"))
		unknown := true
		cut := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
			if unknown && point == "$JS.API.STREAM.INFO."+stream {
				return errors.New("no answer")
			}
			return do(ctx)
		})
		cut.Opts.Replicas = 3
		_, err := cut.Erase(t.Context(), "s")
		require.ErrorIs(t, err, eventlog.ErrUnavailable, stream)
		_, err = l.TombstoneOf(t.Context(), "s")
		require.NoError(t, err, stream)
		unknown = false
		_, err = cut.FinishErasures(t.Context(), true)
		require.NoError(t, err)
		_, err = l.TombstoneOf(t.Context(), "s")
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		requireNothing(t, l, "s")
	}
}
