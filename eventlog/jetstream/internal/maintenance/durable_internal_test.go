package maintenance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
)

// TestALogFindsItsServer: on a connection to a server that leaves syncing to the log, the
// log waits for the disk even if its options do not name that server.
func TestALogFindsItsServer(t *testing.T) {
	t.Parallel()
	for _, group := range []bool{true, false} {
		srv, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), GroupSync: group})
		require.NoError(t, err)
		t.Cleanup(srv.Stop)
		nc, err := srv.Connect()
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		l, err := Open(t.Context(), nc, link.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		require.Equal(t, srv.GroupSync(), l.GroupSync())
	}
}
