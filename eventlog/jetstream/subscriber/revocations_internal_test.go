package subscriber

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// A single server is asked once: its disk may stall for as long as the log waits for it.
func TestASingleServerHasTheLogsPatience(t *testing.T) {
	r := NewRevocations()
	require.NoError(t, r.Open(t.Context(), storetest.Connect(t), 1, func() {}, nil, slog.New(slog.DiscardHandler)))
	t.Cleanup(r.Close)
	require.Equal(t, link.LeaderPatience, r.js.Options().DefaultTimeout)
}
