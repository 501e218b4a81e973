package daemon

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A daemon whose credentials a deployment refuses for some time serves again when they are right.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, Username: "helixd", Password: "right",
	}
	srv, err := server.NewServer(o.Clone())
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(time.Minute))
	path := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil,
		"listen: 127.0.0.1:0\ndataDir: %s\ndrainTimeout: 0s\nauth: {allowUnauthenticated: true}\nnats: {url: %q, user: helixd, password: right}\n",
		t.TempDir(), srv.ClientURL()), 0o600))
	logs := &logBuffer{}
	d := serveFile(t, path, logs, nil)

	o.Port = srv.Addr().(*net.TCPAddr).Port
	o.Password = "wrong"
	require.NoError(t, srv.ReloadOptions(o.Clone()))
	require.Eventually(t, func() bool { // twice for each connection: NATS's client closes it by itself at the second one
		closed, err := srv.Connz(&server.ConnzOptions{State: server.ConnClosed})
		require.NoError(t, err)
		refused := 0
		for _, c := range closed.Conns {
			if c.Reason == server.AuthenticationViolation.String() {
				refused++
			}
		}
		return refused >= 4
	}, time.Minute, 10*time.Millisecond)
	o.Password = "right"
	require.NoError(t, srv.ReloadOptions(o.Clone()))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		status, answer := ask(t, http.MethodPost, d.URL+"/sessions/s/chunks", "", "", `{"type":"text_delta","agentId":"s","agentType":"x","step":0,"timestamp":1,"delta":"hi"}`)
		assert.Equal(c, http.StatusOK, status, answer)
	}, 10*time.Second, 50*time.Millisecond)
	require.Equal(t, 1, strings.Count(logs.String(), "uthorization violation"), "the same for each try: %s", logs.String())
}
