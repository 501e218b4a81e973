package integration_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

// growing leaves a story of a growing deployment out, unless HELIX_GROW is set.
func growing(t *testing.T) {
	t.Helper()
	if os.Getenv("HELIX_GROW") == "" {
		t.Skip("only with HELIX_GROW: it starts several clusters")
	}
}

// embeddedNodes prepares three daemons of a cluster, with the agents of a file.
func embeddedNodes(t *testing.T, config string, args ...string) (nodes []*daemon, files []string) {
	t.Helper()
	agents, err := os.ReadFile(config)
	require.NoError(t, err)
	var listen, routes []string
	for range clusterSize {
		address := freeAddress(t)
		listen, routes = append(listen, address), append(routes, `"nats://`+address+`"`)
	}
	for i := range clusterSize {
		dir := t.TempDir()
		file := filepath.Join(dir, "helix.yaml")
		require.NoError(t, os.WriteFile(file, fmt.Appendf(agents, `
dataDir: %q
nats: {name: n%d, replicas: 3, partitions: 1, cluster: {listen: %q, routes: [%s], user: u, password: p}}
`, filepath.Join(dir, "data"), i, listen[i], strings.Join(routes, ", ")), 0o600))
		nodes = append(nodes, newDaemon(t, append([]string{"serve", "--config", file, "--allow-unauthenticated"}, args...)...))
		files = append(files, file)
	}
	return nodes, files
}

// launch runs a daemon and does not wait for it.
func launch(t *testing.T, d *daemon) {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	d.cmd = exec.Command(path, d.args...)
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = t.TempDir(), d.logs, d.logs
	require.NoError(t, d.cmd.Start())
}

// intoEmbedded restores a backup into a new cluster of embedded servers.
func intoEmbedded(t *testing.T, config, file string) []*daemon {
	t.Helper()
	nodes, files := embeddedNodes(t, config, "--join")
	for _, n := range nodes[1:] {
		launch(t, n)
	}
	require.Contains(t, helixd(t, "restore", file, "--config", files[0], "--json"), `"working"`)
	for _, n := range nodes {
		if n.cmd == nil {
			launch(t, n)
		}
		helixd(t, "healthy", "--wait", clusterPatience.String(), "--server", n.url)
	}
	return nodes
}

// TestABackupGoesAnywhere: a backup of a single node is restored into a cluster of
// embedded servers, one of that into a NATS deployment, one of that into another cluster
// of embedded servers, and one of that into a single node. All sequences stay, and a call
// that waits since the first one is answered in the last one.
func TestABackupGoesAnywhere(t *testing.T) {
	growing(t)
	w := newBackupWorld(t)
	alone := func() *daemon {
		return newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	}
	at := []*daemon{alone()}
	at[0].start()
	w.start(at[0], "told", "tell", "completed")
	w.start(at[0], "asks", "approve", "paused")
	require.NotZero(t, appendTexts(t.Context(), at[0].url, "large", noise(400<<10)))
	stop := func() {
		for _, d := range at {
			d.stop()
		}
	}
	for i, to := range []string{"embedded", "outside", "embedded", "alone"} {
		require.NotZero(t, appendTexts(t.Context(), at[0].url, fmt.Sprint("place-", i), "one ", "two "))
		source := map[string][]eventlog.Record{}
		for _, session := range []string{"told", "asks", "large", fmt.Sprint("place-", i)} {
			source[session] = at[0].records(session)
		}
		file := filepath.Join(t.TempDir(), "b.helix")
		helixd(t, "backup", "--server", at[len(at)-1].url, "--out", file)
		helixd(t, "verify", "--backup", file)
		stop()
		switch to {
		case "embedded":
			at = intoEmbedded(t, w.config, file)
		case "outside":
			c := newCluster(t)
			helixd(t, "restore", file, "--nats", c.url(), "--replicas", "3")
			helixd(t, "verify", "--nats", c.url())
			d := newDaemon(t, "serve", "--config", w.config, "--nats-url", c.url(), "--data-dir", t.TempDir(), "--allow-unauthenticated")
			d.env = []string{"HELIX_NATS_REPLICAS=3"}
			d.start()
			at = []*daemon{d}
		case "alone":
			d := alone()
			dir := d.args[4]
			helixd(t, "restore", file, "--data-dir", dir)
			helixd(t, "verify", "--data-dir", dir)
			d.start()
			at = []*daemon{d}
		}
		for _, d := range at {
			for session, records := range source {
				got := d.records(session)
				require.Equal(t, content(records), content(got[:len(records)]), "%s in place %d", session, i+1)
				require.Equal(t, "session_imported", got[len(records)].Type)
			}
			_, call := d.get("/status?sessionId=asks")
			require.Equal(t, "paused", call["status"])
		}
	}
	d := at[0]
	status, answer := d.post("/submit-tool-result", map[string]any{"sessionId": "asks", "kind": "approval-response", "toolCallId": "c", "approved": true})
	require.Equal(t, "accepted", answer["status"], "%d %v", status, answer)
	status, answer = d.post("/resume", map[string]any{"sessionId": "asks"})
	require.Equal(t, http.StatusOK, status, "%v", answer)
	awaitStatus(d, "asks", "completed")
	stop()
}
