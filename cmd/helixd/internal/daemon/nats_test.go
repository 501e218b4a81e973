package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
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
	began := time.Now()
	d := serveFile(t, path, logs, nil)

	o.Port = srv.Addr().(*net.TCPAddr).Port
	o.Password = "wrong"
	require.NoError(t, srv.ReloadOptions(o.Clone()))
	require.Eventually(t, func() bool { // twice for each connection: NATS's client closes it by itself at the second one
		closed, err := srv.Connz(&server.ConnzOptions{State: server.ConnClosed})
		if err != nil {
			return false
		}
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
	require.Eventually(t, func() bool {
		const chunk = `{"type":"text_delta","agentId":"s","agentType":"x","step":0,"timestamp":1,"delta":"hi"}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.URL+"/sessions/s/chunks", strings.NewReader(chunk))
		if err != nil {
			return false
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, 2*time.Minute, 50*time.Millisecond)
	lines := strings.Count(logs.String(), "uthorization violation")
	require.Positive(t, lines)
	require.LessOrEqual(t, lines, 1+int(time.Since(began)/natsErrorEvery), "the same for each try: %s", logs.String())
}

// The log has each error of a connection once a minute, also if others come between, and not any number of them.
func TestRepeatedErrorsOfAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := &logBuffer{}
		handle := natsErrors(slog.New(slog.NewTextHandler(logs, nil)))
		repeat := func() {
			for range 3 {
				handle(nil, nil, errors.New("first"))
				handle(nil, nil, errors.New("second"))
				handle(nil, nil, nats.ErrSlowConsumer)
			}
		}
		repeat()
		require.Equal(t, 2, strings.Count(logs.String(), "\n"), logs.String())
		time.Sleep(time.Minute)
		repeat()
		require.Equal(t, 4, strings.Count(logs.String(), "\n"), logs.String())
		for i := range 1000 {
			handle(nil, nil, fmt.Errorf("no right to hear %d", i))
		}
		require.Equal(t, 102, strings.Count(logs.String(), "\n"))
	})
}
