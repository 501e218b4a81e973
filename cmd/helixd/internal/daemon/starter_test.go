package daemon

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/cli/operate"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// waitsForNoBody checks that a request is answered, and its connection closed, while its body is missing.
func waitsForNoBody(t *testing.T, f *starter, answers map[string]int) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.serve(listener)
	defer f.shutdown(func() {})
	for path, status := range answers {
		conn, err := net.Dial("tcp", listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
		_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n", path)
		require.NoError(t, err)
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		require.NoError(t, err, path)
		require.Equal(t, status, resp.StatusCode)
		_, err = io.ReadAll(in)
		require.NoError(t, err, "the connection is closed")
	}
}

// A server that is starting answers without waiting for a body.
func TestAStartingServerWaitsForNoBody(t *testing.T) {
	t.Parallel()
	waitsForNoBody(t, newStarter(10, nil, slog.New(slog.DiscardHandler)), map[string]int{"/healthz": 200, "/sessions": 503})
}

// Nor does one that refuses a client without a certificate.
func TestARefusedClientWithoutACertificateIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	f, c := newStarter(10, nil, slog.New(slog.DiscardHandler)), &certificates{}
	c.files.ClientCA = "clients.pem"
	f.open(c.withCertificates(http.NotFoundHandler()))
	waitsForNoBody(t, f, map[string]int{"/sessions": 403})
}

// Before it closes idle connections a server has its clients leave them.
func TestALeavingServerClosesConnectionsAfterTheirAnswers(t *testing.T) {
	t.Parallel()
	f := newStarter(10, nil, slog.New(slog.DiscardHandler))
	f.open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f.serve(listener)
	client := &http.Client{Transport: new(http.Transport)}
	closes := func() bool {
		resp, err := client.Get("http://" + listener.Addr().String())
		require.NoError(t, err)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "ok", string(all))
		return resp.Close
	}
	require.False(t, closes())
	f.leave()
	require.True(t, closes())
	f.shutdown(func() {})
	require.NoError(t, f.wait())
}

// A daemon that waits for the others of its cluster is not ready, and says why.
func TestHealthyOfAStartingServer(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(newStarter(10, nil, slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	out, _, err := clitest.Run[operate.Commands](t, "", "healthy", "--server", s.URL, "--timeout", "1m")
	require.ErrorContains(t, err, "the server is starting")
	require.Equal(t, 1, flags.ExitCode(err))
	require.Empty(t, out)
}
