package jetstream

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A follower that does not read while more arrives than it buffers hears of
// the rest at once, although nothing comes behind it: it needs no idle check.
func TestFollowerCatchesUpWithDropped(t *testing.T) {
	l := openLog(t, nil)
	l.hub.idleCheck = time.Hour
	last := appended(t, l, "s", 0, textEntries("x", 1))
	const n = 1000
	var seen uint64
	for r, err := range l.Follow(t.Context(), "s", last-1) {
		require.NoError(t, err)
		seen++
		require.Equal(t, seen, r.Sequence)
		switch seen {
		case 1:
			last = appended(t, l, "s", last, textEntries("live", 1))
		case 2: // now it is live and stands still
			for range n / 100 {
				last = appended(t, l, "s", last, textEntries("x", 100))
			}
		}
		if seen == n+2 {
			break
		}
	}
}
