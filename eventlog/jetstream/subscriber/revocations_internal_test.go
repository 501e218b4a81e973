package subscriber

import (
	"encoding/hex"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
)

// A revocation is effective for as long as an older right may last. The stream removes it
// later, and rights that are issued after that have no generation.
func TestARevocationEnds(t *testing.T) {
	r := NewRevocations()
	close(r.loaded)
	r.latest[keyOf("new")] = revocation{generation: 7, stored: time.Now().Add(-MaxTTL)}
	r.latest[keyOf("old")] = revocation{generation: 7, stored: time.Now().Add(-holdsFor)}
	require.True(t, r.Revoked("new", ""))
	require.True(t, r.Revoked("new", "6"))
	require.False(t, r.Revoked("new", "7"))
	require.False(t, r.Revoked("old", ""))
	require.Less(t, holdsFor, keptFor)
}

// Others may write to the stream, and anything to a backup: what is no key is left out.
func TestWhatIsNoKeyRevokesNothing(t *testing.T) {
	nc, r := storetest.Connect(t), NewRevocations()
	require.NoError(t, r.Open(t.Context(), nc, 1, func() {}, nil, slog.New(slog.DiscardHandler)))
	t.Cleanup(r.Close)
	const subject = "helix.live.s"
	long := hex.EncodeToString(make([]byte, len(key{})+1))
	for _, k := range []string{long, long[4:], strings.Repeat("x", len(long)-2), hex.EncodeToString(make([]byte, 1000))} {
		_, err := r.js.Publish(t.Context(), revokedSubjects+k, nil)
		require.NoError(t, err)
		require.ErrorContains(t, Fill(t.Context(), nc, 1, eventlog.CopiedItem{Key: k}), "is not the hash of a session")
	}
	require.False(t, r.Revoked(subject, ""))
	_, err := r.js.Publish(t.Context(), keyOf(subject).subject(), nil)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return r.Revoked(subject, "") }, time.Minute, time.Millisecond)
}

// A single server is asked once: its disk may stall for as long as the log waits for it.
func TestASingleServerHasTheLogsPatience(t *testing.T) {
	r := NewRevocations()
	require.NoError(t, r.Open(t.Context(), storetest.Connect(t), 1, func() {}, nil, slog.New(slog.DiscardHandler)))
	t.Cleanup(r.Close)
	require.Equal(t, link.LeaderPatience, r.js.Options().DefaultTimeout)
}
