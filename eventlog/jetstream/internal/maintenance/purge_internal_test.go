package maintenance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
)

// TestAPurgeCountsWhatItRemoves: whatever is appended meanwhile.
func TestAPurgeCountsWhatItRemoves(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 5))
	busy := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "purge" {
			storetest.Appended(t, l, "busy", 0, storetest.TextEntries("y", 20))
		}
		return do(ctx)
	})
	done, err := busy.Purge(t.Context(), storetest.PurgeNow)
	require.NoError(t, err)
	require.EqualValues(t, 5, done[0].Records)
}
