package integration_test

import (
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// TestServeOpensWebSocket: a NATS client hears a run over WebSocket, at the
// address that the daemon logs.
func TestServeOpensWebSocket(t *testing.T) {
	w := newWorld(t)
	t.Setenv("HELIX_NATS_WEBSOCKET_LISTEN", "127.0.0.1:0")
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	d.start()
	var address []string
	require.Eventually(t, func() bool {
		address = regexp.MustCompile(`websocket=(ws://\S+)`).FindStringSubmatch(d.logs.String())
		return address != nil
	}, time.Minute, time.Millisecond)
	nc, err := nats.Connect(address[1], nats.Timeout(time.Minute))
	require.NoError(t, err)
	defer nc.Close()
	sub, err := nc.SubscribeSync("helix.live.session")
	require.NoError(t, err)
	require.NoError(t, nc.Flush())
	w.run(t, d, "session", nil)
	m, err := sub.NextMsg(time.Minute)
	require.NoError(t, err)
	require.NotEmpty(t, m.Header.Get("Nats-Sequence"))
	d.stop()
}
