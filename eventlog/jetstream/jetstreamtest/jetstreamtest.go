// Package jetstreamtest opens logs for tests.
package jetstreamtest

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream"
)

// Open opens the log, and closes it when the test ends.
func Open(t testing.TB, nc *nats.Conn, o *jetstream.Options) *jetstream.Log {
	t.Helper()
	log, err := jetstream.Open(t.Context(), nc, o)
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	return log
}
