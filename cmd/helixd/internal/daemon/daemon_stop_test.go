package daemon

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// TestAStopWhileStarting: a daemon that is stopped while it starts reports that, also if
// what it waited for ended with its own error.
func TestAStopWhileStarting(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		conn, err := silent.Accept()
		if err == nil {
			stop()
			conn.Close()
		}
	}()
	c := config.Default()
	c.Listen, c.NATS.URL = "127.0.0.1:0", "nats://"+silent.Addr().String()
	_, err = Start(ctx, c, nil, false, slog.New(slog.DiscardHandler))
	<-hungUp
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "nats: ")
}
