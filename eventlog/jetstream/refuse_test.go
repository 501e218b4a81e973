package jetstream

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
)

// A log that must store nothing can still be read, and may free space for longer than it
// accepts new records.
func TestRefusals(t *testing.T) {
	t.Parallel()
	_, nc := embedtest.Start(t, embed.Options{})
	var low, full atomic.Bool
	log, err := Open(t.Context(), nc, &Options{Refuses: func(frees bool) string {
		if full.Load() || low.Load() && !frees {
			return "no room"
		}
		return ""
	}})
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	entry := []eventlog.Entry{{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: "s"}, Payload: []byte("{}")}}
	var head uint64
	for _, session := range []string{"s", "t"} {
		head, err = log.Append(t.Context(), session, 0, entry)
		require.NoError(t, err)
	}

	full.Store(true)
	require.Equal(t, []string{"no room", "no room"}, []string{log.Info().Refuses, log.Info().RefusesErasure})
	_, err = log.Append(t.Context(), "t", head, entry)
	require.ErrorIs(t, err, eventlog.ErrRefused)
	_, err = log.Erase(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrRefused)
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{})
	require.ErrorIs(t, err, eventlog.ErrRefused)
	_, err = log.Trim(t.Context(), "s", head)
	require.ErrorIs(t, err, eventlog.ErrRefused)
	for _, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
	}

	full.Store(false)
	low.Store(true)
	require.Equal(t, []string{"no room", ""}, []string{log.Info().Refuses, log.Info().RefusesErasure})
	_, err = log.Append(t.Context(), "t", head, entry)
	require.ErrorIs(t, err, eventlog.ErrRefused)
	_, err = log.Erase(t.Context(), "s")
	require.NoError(t, err, "its tombstone is stored all the same")

	low.Store(false)
	_, err = log.Append(t.Context(), "t", head, entry)
	require.NoError(t, err)
}
