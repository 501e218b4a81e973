package integration_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	httpclient "github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/checker"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/docs"
	"github.com/helixd/helixd/integration/testkit"
)

// firstMonth is the page of an operator's first month.
const firstMonth = "operations/first-month.md"

// Of that page: where nodes serve clients, one after the other; where the restored backup
// serves; the folders of the last nodes; and what only the erased user has said.
var (
	monthNodes   = []string{"127.0.0.1:8080", "127.0.0.1:8081", "127.0.0.1:8082", "127.0.0.1:8083", "127.0.0.1:8084"}
	monthCopy    = "127.0.0.1:8090"
	monthFolders = []string{"node1", "node2", "node4", "month.backup"}
	monthSecret  = "4711-quince"
)

// monthWithin bounds the page.
const monthWithin = 8 * time.Minute

// TestFirstMonth does what the page says, in a folder that has nothing but a release, while
// clients append, stream and follow sessions. After each chapter it looks at all sessions.
func TestFirstMonth(t *testing.T) {
	release := os.Getenv("HELIX_RELEASE")
	if release == "" {
		t.Skip("set HELIX_RELEASE to a folder with a release, as `make month` does")
	}
	all := releases(t)
	last := all[len(all)-1]
	earlier, err := deployment.Released(t.Context(), last.commit, "v"+last.version)
	require.NoError(t, err)
	prometheus := os.Getenv("HELIX_PROMETHEUS")
	if prometheus == "" {
		prometheus = filepath.Join(t.TempDir(), "prometheus")
		build := exec.CommandContext(t.Context(), "go", "build", "-o", prometheus, ".")
		build.Dir = "alerts"
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	if docs.Isolated() && os.Getenv("HELIX_ISOLATED") == "" { // the clients have to be in the network of the page's shell
		again := exec.CommandContext(t.Context(), "unshare", "-rn", "sh", "-c", `ip link set lo up && exec "$0" "$@"`,
			os.Args[0], "-test.v", "-test.run=^TestFirstMonth$")
		again.Env = append(os.Environ(), "HELIX_ISOLATED=1", "HELIX_PROMETHEUS="+prometheus)
		again.Stdout, again.Stderr = os.Stderr, os.Stderr
		require.NoError(t, again.Run())
		return
	}

	m := &month{T: t, before: "v" + last.version}
	var bin string
	m.dir, bin = releaseFolder(t, release, "helixd_*_"+platform+".tar.gz", "SHA256SUMS")
	m.pack(earlier)
	// The rules' durations are a twentieth, so that the month passes in minutes.
	require.NoError(t, os.WriteFile(filepath.Join(bin, "prometheus"), []byte("#!/bin/sh\nexec "+prometheus+" -scale 20 \"$@\"\n"), 0o755))
	m.shell, err = docs.StartShell(t.Context(), m.dir, append(environment(t, bin), "HOME="+m.dir), false)
	require.NoError(t, err)
	defer m.shell.Close()
	defer m.explain()
	hangs := time.AfterFunc(monthWithin, m.shell.Close)
	defer hangs.Stop()
	m.live()
	hangs.Stop()
	m.end()
}

// month is the state of the page.
type month struct {
	*testing.T
	dir      string
	before   string // the version to which the page goes back
	shell    *docs.Shell
	checker  *checker.Checker
	nodes    []*monthNode
	promised checker.Promised
}

// live does one chapter after the other.
func (m *month) live() {
	after := map[string]func(){
		"Use it":              m.load,
		"Go back and upgrade": func() { m.promised = m.checker.Promised() },
		"Restore elsewhere":   m.restored,
		"Erase a user":        m.erased,
	}
	page := releasePage(m.T, firstMonth)
	for len(page.Blocks) > 0 {
		heading := page.Blocks[0].Heading
		n := slices.IndexFunc(page.Blocks, func(b docs.Block) bool { return b.Heading != heading })
		if n < 0 {
			n = len(page.Blocks)
		}
		began := time.Now()
		err := docs.Run(docs.Page{Name: page.Name, Blocks: page.Blocks[:n]}, m.dir, m.shell)
		if m.checker != nil {
			require.NoError(m, context.Cause(m.checker.Context()), heading)
		}
		require.NoError(m, err, heading)
		if f := after[heading]; f != nil {
			f()
		}
		delete(after, heading)
		took := time.Since(began)
		if m.checker != nil {
			require.NoError(m, m.checker.Audit(), heading)
		}
		deployment.Say("%s: %.1f s, and %.1f s to look at all sessions", heading, took.Seconds(), (time.Since(began) - took).Seconds())
		page.Blocks = page.Blocks[n:]
	}
	require.Empty(m, slices.Collect(maps.Keys(after)), "the page has no such chapters")
}

// pack packs the program of the earlier version as its release did.
func (m *month) pack(program string) {
	name := "helixd_" + m.before + "_" + platform
	to := filepath.Join(m.dir, "earlier")
	folder := filepath.Join(m.TempDir(), name)
	raw, err := os.ReadFile(program)
	require.NoError(m, err)
	require.NoError(m, os.MkdirAll(folder, 0o755))
	require.NoError(m, os.Mkdir(to, 0o755))
	require.NoError(m, os.WriteFile(filepath.Join(folder, "helixd"), raw, 0o755))
	out, err := exec.CommandContext(m.Context(), "tar", "-C", filepath.Dir(folder), "-I", "gzip -1", "-cf", filepath.Join(to, name+".tar.gz"), name).CombinedOutput()
	require.NoError(m, err, "%s", out)
}

// load begins to use the deployment, with the application's token.
func (m *month) load() {
	for _, address := range monthNodes {
		m.nodes = append(m.nodes, &monthNode{Node: checker.Node{
			Name: address, API: m.client(address, "app", deployment.Within), Clients: m.client(address, "app", checker.AnswerWithin),
		}})
	}
	var err error
	m.checker, err = checker.New(m.Context(), checker.Options{Nodes: m.ready, Seed: uint64(time.Now().UnixNano()), Sessions: 8, Agents: []string{"clerk"}, Pause: 400 * time.Millisecond})
	require.NoError(m, err)
	m.Cleanup(m.checker.Close)
	context.AfterFunc(m.checker.Context(), m.shell.Close) // else the page would go on without the clients
	for _, n := range m.nodes {
		n.probe(m.checker.Context())
		go n.watch(m.checker.Context())
	}
	require.NoError(m, m.checker.Learn())
	m.checker.Load()
}

// client returns a client with one of the page's tokens, which trusts the page's authority.
func (m *month) client(address, token string, idle time.Duration) *httpclient.Client {
	authority, err := os.ReadFile(filepath.Join(m.dir, "ca.pem"))
	require.NoError(m, err)
	trusted := x509.NewCertPool()
	require.True(m, trusted.AppendCertsFromPEM(authority))
	raw, err := os.ReadFile(filepath.Join(m.dir, token+".token"))
	require.NoError(m, err)
	return deployment.ClientWith("https://"+address, idle, strings.TrimSpace(string(raw)), &tls.Config{RootCAs: trusted})
}

// ready are the nodes to which a load balancer would send clients.
func (m *month) ready() (all []checker.Node) {
	for _, n := range m.nodes {
		n.mu.Lock()
		if n.ready {
			node := n.Node
			node.Earlier = n.version == m.before
			all = append(all, node)
		}
		n.mu.Unlock()
	}
	if len(all) == 0 { // they try in vain
		for _, n := range m.nodes {
			all = append(all, n.Node)
		}
	}
	return all
}

// monthNode is an address at which a node may serve.
type monthNode struct {
	checker.Node
	mu      sync.Mutex
	ready   bool
	version string // when it was ready last
}

// probe asks whether the node is ready.
func (n *monthNode) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := n.API.Ready(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ready = err == nil && r.Ready; n.ready {
		n.version = r.Version
	}
}

func (n *monthNode) watch(ctx context.Context) {
	for deployment.Sleep(ctx, 300*time.Millisecond) == nil {
		n.probe(ctx)
	}
}

// restored: the restored backup has all that was promised before it was made.
func (m *month) restored() {
	require.Positive(m, m.promised.Sessions())
	require.NoError(m, m.promised.In(m.Context(), m.client(monthCopy, "ops", deployment.Within)))
	deployment.Say("the restored backup has what was promised of %d sessions", m.promised.Sessions())
}

// erased: no file of a node, nor the new backup, has what the user has said.
func (m *month) erased() {
	for _, name := range monthFolders {
		folder := filepath.Join(m.dir, name)
		_, err := os.Stat(folder)
		require.NoError(m, err)
		files, err := testkit.Scan(m.Context(), folder, monthSecret)
		require.NoError(m, err)
		require.Empty(m, files)
	}
}

// end has all sessions come to their end, and holds them against what was promised.
func (m *month) end() {
	require.NoError(m, m.checker.Rest())
	serving := m.ready()
	require.Len(m, serving, 3, "the nodes that serve")
	require.NoError(m, m.checker.Check())
	for _, log := range m.logs() {
		require.Empty(m, checker.BadLine(log), log)
	}
}

func (m *month) logs() []string {
	logs, err := filepath.Glob(filepath.Join(m.dir, "*.log"))
	require.NoError(m, err)
	return logs
}

// explain shows the end of all logs if the month has failed.
func (m *month) explain() {
	if !m.Failed() {
		return
	}
	for _, log := range m.logs() {
		raw, _ := os.ReadFile(log)
		fmt.Fprintf(os.Stderr, "--- %s\n%s\n", filepath.Base(log), raw[max(0, len(raw)-4000):])
	}
}
