// Package embedtest has an embedded server for tests.
package embedtest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
)

// Start starts a server and connects to it. Both end with the test. Without a DataDir, the
// server's files are in a folder of the test.
func Start(t testing.TB, o embed.Options) (*embed.Server, *nats.Conn) {
	t.Helper()
	srv := Server(t, o)
	nc, err := srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return srv, nc
}

// Server is Start without a connection.
func Server(t testing.TB, o embed.Options) *embed.Server {
	t.Helper()
	if o.DataDir == "" {
		o.DataDir = t.TempDir()
	}
	srv, err := embed.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	return srv
}
