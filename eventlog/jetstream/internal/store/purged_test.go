package store_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/feed"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

func open(t *testing.T, nc *nats.Conn, o link.Options) *maintenance.Maintenance {
	t.Helper()
	l, err := maintenance.Open(t.Context(), nc, o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// A session whose records are only in segments after a purge does not break up the
// others' batch, whichever node has purged.
func TestAPurgedSessionLeavesABatchWhole(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			l := open(t, storetest.Connect(t), link.Options{Durability: eventlog.DurabilityFsync})
			heads := map[string]uint64{"purged": storetest.Appended(t, l, "purged", 0, storetest.TextEntries("x", 20))}
			purger := l
			if !known {
				purger = open(t, l.Conn, link.Options{})
			}
			_, err := purger.Purge(t.Context(), storetest.PurgeNow)
			require.NoError(t, err)
			for i := range 30 {
				session := fmt.Sprint("s", i)
				heads[session] = storetest.Appended(t, l, session, 0, storetest.TextEntries("x", 1))
			}
			begins, queued, work := store.Queueing(t, l.Store)
			require.Equal(t, known, begins() > heads["purged"])
			type answer struct {
				session string
				last    uint64
				err     error
			}
			answers := make(chan answer)
			for session, head := range heads {
				go func() {
					last, err := l.Append(t.Context(), session, head, storetest.TextEntries("y", 1))
					answers <- answer{session, last, err}
				}()
			}
			queued(len(heads))
			work()
			batches := map[string]bool{}
			for range heads {
				a := <-answers
				require.NoError(t, a.err, a.session)
				m, err := l.MessageAt(t.Context(), layout.LogStream(0), a.last)
				require.NoError(t, err)
				if a.session != "purged" {
					batches[wire.First(m.Header, wire.HeaderBatchID)] = true
				}
			}
			require.Len(t, batches, 1, "the others were stored together")
			require.NotContains(t, batches, "")
			storetest.RequireRecords(t, l, "purged", append(storetest.TextEntries("x", 20), storetest.TextEntries("y", 1)...))
		})
	}
}

// A node takes no unreadable segment for a free id when another node has purged the log:
// the segment may be the only copy of the session's records.
func TestAnotherNodesPurgeIsNoticed(t *testing.T) {
	t.Parallel()
	purger := open(t, storetest.Connect(t), link.Options{})
	unreadable := false
	l, err := maintenance.Open(link.WithTuning(t.Context(), link.Tuning{
		Hook: func(ctx context.Context, point string, do func(context.Context) error) error {
			if unreadable && point == "$JS.API.STREAM.MSG.GET."+layout.SegmentStream(0) {
				return link.ErrNoMessage
			}
			return do(ctx)
		},
	}), purger.Conn, link.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	storetest.Appended(t, purger, "s", 0, storetest.TextEntries("x", 20))
	_, err = purger.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	_, err = feed.New(l.Store).Spans(t.Context())
	require.NoError(t, err)
	unreadable = true
	_, err = l.Append(t.Context(), "s", 0, storetest.TextEntries("y", 1))
	require.ErrorIs(t, err, eventlog.ErrDamaged)
	storetest.RequireRecords(t, purger, "s", storetest.TextEntries("x", 20))
}
