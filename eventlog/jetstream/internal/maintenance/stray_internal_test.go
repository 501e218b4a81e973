package maintenance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/integration/testkit"
)

// TestATombstoneThatArrivesAfterItsErasureErasesNothing: an eraser's tombstone is late, another one
// erases the session, and its id can be used again.
func TestATombstoneThatArrivesAfterItsErasureErasesNothing(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
	require.NoError(t, l.Seal(t.Context(), "s"))
	_, err := l.purgeAll(t.Context(), 0, func() time.Time { return time.Now().Add(time.Minute) })
	require.NoError(t, err)
	published := 0
	slow := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if strings.HasPrefix(point, "publish helix.log.") {
			if published++; published == 1 { // after the purged record
				_, err := l.Erase(context.WithoutCancel(ctx), "s")
				require.NoError(t, err)
			}
		}
		return do(ctx)
	})
	_, err = slow.wantTombstone(t.Context(), "s", 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.NotZero(t, published)
	requireNothing(t, l, "s")
	require.Greater(t, storetest.Appended(t, l, "s", 0, storetest.TextEntries("new", 1)), head)
}

// TestAnErasureBesideAPurgeIsNoDamage: a session is erased at any of a purge's requests;
// the purge does not report it as one whose segments are damaged.
func TestAnErasureBesideAPurgeIsNoDamage(t *testing.T) {
	t.Parallel()
	for at := range testkit.Positions(3) {
		l := openLog(t, link.Options{})
		storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
		require.NoError(t, l.Seal(t.Context(), "s"))
		steps := 0
		other := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error {
			if steps++; steps == at+1 {
				_, err := l.Erase(context.WithoutCancel(ctx), "s")
				require.NoError(t, err)
			}
			return do(ctx)
		})
		_, err := other.purgeAll(t.Context(), 0, func() time.Time { return time.Now().Add(time.Minute) })
		require.NoError(t, err)
		l.Close()
		if steps <= at {
			break
		}
	}
}
