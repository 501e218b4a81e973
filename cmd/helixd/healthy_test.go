package main

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/httpapi"
)

func TestHealthy(t *testing.T) {
	ready := httpapi.Readiness{Ready: true, Durability: "fsync", Backend: "jetstream"}
	for name, c := range map[string]struct {
		url, want string
	}{
		"ready":       {readyzServer(t, 200, ready), ""},
		"a slash":     {readyzServer(t, 200, ready) + "/", ""},
		"draining":    {readyzServer(t, 503, httpapi.Readiness{Backend: "jetstream", Draining: true}), "draining"},
		"refuses":     {readyzServer(t, 503, httpapi.Readiness{Backend: "jetstream", Refuses: "the disk is full"}), "the disk is full"},
		"not ready":   {readyzServer(t, 503, httpapi.Readiness{Backend: "jetstream"}), "is not ready"},
		"other":       {readyzServer(t, 200, httpapi.Readiness{}), "not as a daemon does"},
		"starting":    {startingServer(t), "the server is starting"},
		"nobody":      {"http://" + closedAddress(t), "refused"},
		"no URL":      {"localhost", "localhost"},
		"not an HTTP": {"ftp://localhost", "ftp"},
	} {
		var out bytes.Buffer
		err := healthyCmd{Server: c.url, Timeout: time.Minute}.Run(&flags.Process{Ctx: t.Context(), Stdout: &out})
		if c.want == "" {
			require.NoError(t, err, name)
			require.Equal(t, "ready\n", out.String(), name)
			continue
		}
		require.ErrorContains(t, err, c.want, name)
		require.Equal(t, 1, flags.ExitCode(err), name)
		require.Empty(t, out.String(), name)
	}
}

func TestHealthyWaits(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(`{"ready":true,"backend":"jetstream"}`))
	}))
	t.Cleanup(s.Close)
	var out bytes.Buffer
	require.NoError(t, healthyCmd{Server: s.URL, Timeout: time.Minute, Wait: time.Minute}.Run(&flags.Process{Ctx: t.Context(), Stdout: &out}))
	require.EqualValues(t, 3, asked.Load())
}

// startingServer is a daemon that waits for the others of its cluster.
func startingServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(newFront(10, nil, slog.New(slog.DiscardHandler)))
	t.Cleanup(s.Close)
	return s.URL
}

// closedAddress is one at which nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
