package integration_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/daily"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/snapshot/backup"
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

// intoEmbedded restores a backup into a new cluster of embedded servers.
func intoEmbedded(t *testing.T, config, file string) []*daemon {
	t.Helper()
	nodes, files := embeddedNodes(t, config, "--join")
	for _, n := range nodes[1:] {
		n.launch()
	}
	require.Contains(t, helixd(t, "restore", file, "--config", files[0], "--json"), `"working"`)
	for _, n := range nodes {
		if n.cmd == nil {
			n.launch()
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
	for session, agent := range map[string]string{"files": "scribe", "erased": "secretive"} {
		at[0].ok("/start", map[string]any{"sessionId": session, "agentType": agent, "message": "Go."})
		at[0].waitFor(session, "completed")
	}
	helixd(t, "erase", "erased", "--yes", "--server", at[0].url)
	at[0].stop()
	today := time.Now().UTC().Format(time.DateOnly)
	generation := revokeAndSpend(t, at[0].args[4])
	at[0].start()
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
		require.Equal(t, []string{"files"}, treesWithFiles(t, file), "nothing of an erased one is in it")
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
	d.ok("/resume", map[string]any{"sessionId": "asks"})
	d.waitFor("asks", "completed")
	stop()
	requireBeside(t, d.args[4], generation, today)
}

// revokeAndSpend revokes rights to a session and spends some of a tenant's budget, in the
// data folder of a daemon that is stopped. It returns the generation of rights to the
// session from then on.
func revokeAndSpend(t *testing.T, dataDir string) (generation uint64) {
	t.Helper()
	nc, stop := serverOf(t, dataDir)
	defer stop()
	r := subscriber.NewRevocations()
	require.NoError(t, r.Open(t.Context(), nc, 1, func() {}, nil, slog.New(slog.DiscardHandler)))
	defer r.Close()
	for _, session := range []string{"told", "asks", "told"} {
		require.NoError(t, r.Revoke(t.Context(), session))
	}
	q := quota.New(tokenLimits, nil, daily.New(nc, 1, nil))
	reserved, err := q.Reserve(t.Context(), "red", "told", "1", "m", fact.TokenUsage{Prompt: 100})
	require.NoError(t, err)
	require.NoError(t, reserved.Settle(t.Context(), "m", fact.TokenUsage{Prompt: 70}))
	generation, err = r.Generation(t.Context(), "told")
	require.NoError(t, err)
	return generation
}

var tokenLimits = quota.Tenants{Default: quota.Limits{TokensPerDay: 1000}}

// requireBeside checks, in the data folder of a daemon that is stopped, what revokeAndSpend
// and the agents have left.
func requireBeside(t *testing.T, dataDir string, generation uint64, day string) {
	t.Helper()
	nc, stop := serverOf(t, dataDir)
	defer stop()
	r := subscriber.NewRevocations()
	require.NoError(t, r.Open(t.Context(), nc, 1, func() {}, nil, slog.New(slog.DiscardHandler)))
	defer r.Close()
	subject := layout.LiveSubject("told")
	require.False(t, r.Revoked(subject, fmt.Sprint(generation)), "a right from after the revocation")
	require.True(t, r.Revoked(subject, fmt.Sprint(generation-1)), "one from before it")
	require.False(t, r.Revoked(layout.LiveSubject("files"), "0"))
	require.NoError(t, r.Revoke(t.Context(), "told"))
	require.True(t, r.Revoked(subject, fmt.Sprint(generation)), "a later revocation")

	q := quota.New(tokenLimits, nil, daily.New(nc, 1, nil))
	spent, _, err := q.Spent(t.Context(), "red")
	require.NoError(t, err)
	if day == time.Now().UTC().Format(time.DateOnly) {
		require.Equal(t, int64(70), spent.Tokens)
	}

	files, err := objects.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	roots, err := files.Roots(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"files"}, roots)
	s := workspace.Session{Root: "files", ID: "files"}
	w, _, err := files.Open(t.Context(), s)
	require.NoError(t, err)
	defer w.Close()
	plan, err := w.FS().ReadFile(t.Context(), "plan.txt")
	require.NoError(t, err)
	require.Equal(t, "walls, roof", string(plan))
}

// serverOf starts a server on the data folder of a daemon that is stopped.
func serverOf(t *testing.T, dataDir string) (nc *nats.Conn, stop func()) {
	t.Helper()
	srv, err := embed.Start(t.Context(), embed.Options{DataDir: filepath.Join(dataDir, "jetstream"), SyncInterval: time.Minute})
	require.NoError(t, err)
	nc, err = srv.Connect()
	require.NoError(t, err)
	return nc, func() { nc.Close(); srv.Stop() }
}

// treesWithFiles returns the roots of the session trees of which a backup has files.
func treesWithFiles(t *testing.T, path string) []string {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	roots := map[string]bool{}
	_, _, err = backup.Read(t.Context(), file, backup.Visitor{Item: func(of string, item eventlog.CopiedItem) error {
		if of == "workspaces" {
			root, _ := objects.RootOf(item.Key)
			roots[root] = true
		}
		require.NotContains(t, string(item.Data), "a secret of hers")
		return nil
	}})
	require.NoError(t, err)
	return slices.Sorted(maps.Keys(roots))
}
