package operate

import (
	"bytes"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/httpapi/api"
)

func TestHealthy(t *testing.T) {
	ready := api.Readiness{Ready: true, Durability: "fsync", Backend: "jetstream"}
	for name, c := range map[string]struct {
		url, want string
	}{
		"ready":       {clitest.Ready(t, 200, ready), ""},
		"a slash":     {clitest.Ready(t, 200, ready) + "/", ""},
		"draining":    {clitest.Ready(t, 503, api.Readiness{Backend: "jetstream", Draining: true}), "draining"},
		"refuses":     {clitest.Ready(t, 503, api.Readiness{Backend: "jetstream", Refuses: "the disk is full"}), "the disk is full"},
		"not ready":   {clitest.Ready(t, 503, api.Readiness{Backend: "jetstream"}), "is not ready"},
		"other":       {clitest.Ready(t, 200, api.Readiness{}), "not as a daemon does"},
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

// closedAddress is one at which nobody listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
