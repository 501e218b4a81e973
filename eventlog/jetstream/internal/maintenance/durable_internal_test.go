package maintenance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
)

// TestALogFindsItsServer: on a connection to a server that leaves syncing to the log, the
// log waits for the disk even if its options do not name that server.
func TestALogFindsItsServer(t *testing.T) {
	t.Parallel()
	for _, group := range []bool{true, false} {
		srv, nc := embedtest.Start(t, embed.Options{GroupSync: group})
		l, err := Open(t.Context(), nc, link.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { l.Close() })
		require.Equal(t, srv.GroupSync(), l.GroupSync())
	}
}
