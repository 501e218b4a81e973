package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/httpapi"
)

// doctorText runs the command by a clock, and returns what it prints.
func doctorText(t *testing.T, ctx context.Context, now func() time.Time, args ...string) (string, error) {
	t.Helper()
	var c cli
	parser, err := kong.New(&c)
	require.NoError(t, err)
	_, err = parser.Parse(append([]string{"doctor"}, args...))
	require.NoError(t, err)
	var out bytes.Buffer
	err = c.Doctor.run(&process{ctx: ctx, stdout: &out}, now)
	return out.String(), err
}

// readyzServer answers GET /readyz as a daemon would.
func readyzServer(t *testing.T, status int, r httpapi.Readiness) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestDoctorPrintsText(t *testing.T) {
	url := readyzServer(t, 200, httpapi.Readiness{
		Ready: true, Durability: "unknown", Guarantee: "little", Backend: "jetstream", Partitions: 1, Agents: []string{"a"}, Version: "v1",
	})
	out, err := doctorText(t, t.Context(), time.Now, "--server", url)
	require.NoError(t, err)
	require.Equal(t, ""+
		"ok       daemon       "+url+" is ready, helixd v1, partitions: 1, agents: a\n"+
		"warning  durability   unknown: little\n"+
		"                      -> keep the streams on a cluster of three with nats.replicas: 3\n"+
		"ok       clock        that of "+url+" is within 2 s of this machine's\n"+
		"warnings: 1, problems: 0\n", out)
}

func TestDoctorOnADaemonThatIsNotWell(t *testing.T) {
	r := httpapi.Readiness{Durability: "fsync", Guarantee: "much", Backend: "jetstream", Refuses: "server version 2.11.4 is too old"}
	out, err := doctorText(t, t.Context(), time.Now, "--server", readyzServer(t, 503, r))
	require.ErrorIs(t, err, errIll)
	require.Equal(t, 1, max(exitCode(err), doctorCode(err)))
	require.Contains(t, out, "-> change what it names: server version 2.11.4 is too old")

	r.Refuses = ""
	out, err = doctorText(t, t.Context(), time.Now, "--server", readyzServer(t, 503, r))
	require.ErrorIs(t, err, errIll)
	require.Contains(t, out, "helixd doctor --nats URL")

	out, err = doctorText(t, t.Context(), time.Now, "--server", readyzServer(t, 404, httpapi.Readiness{}))
	require.Equal(t, 2, max(exitCode(err), doctorCode(err)))
	require.Contains(t, out, "give the URL of helixd's HTTP server as --server")
}

func TestDoctorOnADaemonsClock(t *testing.T) {
	url := readyzServer(t, 200, httpapi.Readiness{Ready: true, Durability: "fsync", Backend: "jetstream"})
	for apart, want := range map[time.Duration]jetstream.Health{
		500 * time.Millisecond: jetstream.Healthy, -15 * time.Second: jetstream.Doubtful, 15 * time.Second: jetstream.Doubtful,
		time.Hour: jetstream.Ill, -time.Hour: jetstream.Ill,
	} {
		out, err := doctorText(t, t.Context(), func() time.Time { return time.Now().Add(apart) }, "--server", url, "--json")
		require.Equal(t, want == jetstream.Ill, errors.Is(err, errIll), "%s: %v", apart, err)
		var d struct{ Checks []jetstream.Check }
		require.NoError(t, json.Unmarshal([]byte(out), &d))
		last := d.Checks[len(d.Checks)-1]
		require.Equal(t, jetstream.CheckClock, last.ID)
		require.Equal(t, want, last.Status, apart)
		if want != jetstream.Healthy {
			require.Contains(t, last.Advice, "NTP")
		}
	}
}

// What was interrupted is no success.
func TestDoctorInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := doctorText(t, ctx, time.Now, "--server", readyzServer(t, 200, httpapi.Readiness{}))
	require.Error(t, err)
	require.NotErrorIs(t, err, context.Canceled)
	require.Equal(t, 2, max(exitCode(err), doctorCode(err)))
}

func TestDoctorOnAFolderThatCanNotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	out, err := doctorText(t, t.Context(), time.Now, "--data-dir", filepath.Join(file, "data"))
	require.Equal(t, 2, max(exitCode(err), doctorCode(err)))
	require.Contains(t, out, "problem  folder")
	require.Contains(t, out, file)
}

func TestDoctorOnReplicasOfOneServer(t *testing.T) {
	t.Setenv("HELIX_NATS_REPLICAS", "3")
	out, err := doctorText(t, t.Context(), time.Now, "--data-dir", filepath.Join(t.TempDir(), "data"))
	require.ErrorIs(t, err, errIll)
	require.Contains(t, out, "nats.replicas")
}

// Alone it would wait for the others.
func TestDoctorOnAClusterNodeThatIsStopped(t *testing.T) {
	dir := stored(t, nil)
	t.Setenv("HELIX_NATS_CLUSTER_LISTEN", "127.0.0.1:7000")
	t.Setenv("HELIX_NATS_CLUSTER_ROUTES", "nats://127.0.0.1:7001")
	_, err := doctorText(t, t.Context(), time.Now, "--data-dir", dir)
	require.Equal(t, 2, max(exitCode(err), doctorCode(err)))
	require.ErrorContains(t, err, "start helixd serve, then look again")
}
