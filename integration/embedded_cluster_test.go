package integration_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// clusterPatience is how long a cluster may take on a busy machine; a leader's
// election alone is seconds.
const clusterPatience = 3 * time.Minute

// node is one of three daemons that keep their log together.
type node struct {
	*daemon
	dir string
}

// newNodes prepares daemons on the files of cmd/helixd/examples/cluster, on
// free ports, with more settings.
func newNodes(t *testing.T, settings ...string) (nodes [3]*node) {
	t.Helper()
	testkit.Cluster(t)
	var listen, routes [3]string
	for i := range nodes {
		listen[i] = freeAddress(t)
		routes[i] = "nats://" + listen[i]
	}
	for i := range nodes {
		file, err := filepath.Abs(fmt.Sprintf("../cmd/helixd/examples/cluster/node%d.yaml", i+1))
		require.NoError(t, err)
		dir := t.TempDir()
		nodes[i] = &node{newDaemon(t, "serve", "--config", file, "--data-dir", dir), dir}
		nodes[i].env = append([]string{
			"HELIX_TOKEN=t0ken", "HELIX_CLUSTER_PASSWORD=s3cret",
			"HELIX_NATS_CLUSTER_LISTEN=" + listen[i], "HELIX_NATS_CLUSTER_ROUTES=" + strings.Join(routes[:], ","),
		}, settings...)
	}
	return nodes
}

// startAll starts nodes and waits until they are ready.
func startAll(nodes []*node) {
	for _, n := range nodes {
		n.launch()
	}
	for _, n := range nodes {
		n.ready()
	}
}

// slowNodes starts nodes whose agent takes seconds for an answer, with more settings.
func slowNodes(t *testing.T, settings ...string) [3]*node {
	t.Helper()
	nodes := newNodes(t, settings...)
	for i, n := range nodes {
		example := slices.Index(n.args, "--config") + 1
		raw, err := os.ReadFile(n.args[example])
		require.NoError(t, err)
		slow := strings.Replace(string(raw), "scriptDelay: 20ms", "scriptDelay: 300ms", 1)
		require.NotEqual(t, string(raw), slow, "node %d", i)
		n.args[example] = configFile(t, slow)
	}
	startAll(nodes[:])
	return nodes
}

// ready waits for the daemon and returns what it says of itself.
func (n *node) ready() (answer map[string]any) {
	n.t.Helper()
	patient := &http.Client{Transport: client.Transport, Timeout: time.Second} // it takes connections before it answers
	require.Eventually(n.t, func() bool {
		r, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.url+"/readyz", nil)
		if err != nil {
			return false
		}
		r.Header.Set("Authorization", "Bearer t0ken") // else it says no more than ready
		resp, err := patient.Do(r)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(&answer) == nil
	}, clusterPatience, 20*time.Millisecond, "the node does not get ready: %s", n.logs)
	return answer
}

// call sends a request as the holder of the files' token.
func (n *node) call(method, path, body string) *http.Response {
	n.t.Helper()
	resp, err := ask(n.t.Context(), method, n.url+path, body, "Authorization", "Bearer t0ken")
	require.NoError(n.t, err)
	return resp
}

// startSession returns the id of a session that has begun. Until the log has a
// leader again a node says so, and that it does not know what became of it.
func (n *node) startSession(name string) (id string) {
	n.t.Helper()
	for begin, try := time.Now(), 1; ; try++ {
		id = fmt.Sprint(name, "-", try)
		resp := n.call(http.MethodPost, "/start", `{"sessionId":"`+id+`","agentType":"greeter","message":"Hi"}`)
		raw, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		require.NoError(n.t, err)
		if resp.StatusCode == http.StatusOK {
			return id
		}
		require.Equal(n.t, http.StatusServiceUnavailable, resp.StatusCode, "%s", raw)
		require.Less(n.t, time.Since(begin), clusterPatience, "%s", raw)
	}
}

// patiently asks until the log has a leader to answer.
func (n *node) patiently(path string) *http.Response {
	n.t.Helper()
	for begin := time.Now(); ; {
		resp := n.call(http.MethodGet, path, "")
		if resp.StatusCode != http.StatusServiceUnavailable {
			return resp
		}
		resp.Body.Close()
		require.Less(n.t, time.Since(begin), clusterPatience, path)
	}
}

// streamed reads a session's whole stream and returns its text.
func (n *node) streamed(id string) (text string) {
	n.t.Helper()
	ended := false
	c := deployment.ClientWith(n.url, deployment.Within, "t0ken", nil)
	require.NoError(n.t, deployment.Insist(deployment.ASecond(n.t.Context()), func() error {
		return deployment.Read(n.t.Context(), c, id, 0, 0, func(e remotehttp.RawEvent) bool {
			var event struct{ Chunk struct{ Type, Delta string } }
			require.NoError(n.t, json.Unmarshal(e.Data, &event))
			if event.Chunk.Type == "text_delta" {
				text += event.Chunk.Delta
			}
			ended = e.Name == "end"
			return ended
		})
	}))
	require.True(n.t, ended, "the stream broke off: %s", text)
	return text
}

// snapshot returns what a session's answer is and the sequence that it covers.
func (n *node) snapshot(id string) (answer string, sequence float64) {
	n.t.Helper()
	resp := n.patiently("/chat/" + id + "/snapshot")
	defer resp.Body.Close()
	var snapshot struct {
		Messages []struct {
			Role  string
			Parts []struct{ Text string }
		}
		StreamSequence float64
	}
	raw, err := io.ReadAll(resp.Body)
	require.NoError(n.t, err)
	require.Equal(n.t, http.StatusOK, resp.StatusCode, "%s", raw)
	require.NoError(n.t, json.Unmarshal(raw, &snapshot))
	for _, m := range snapshot.Messages {
		for _, p := range m.Parts {
			if m.Role == "assistant" {
				answer += p.Text
			}
		}
	}
	return answer, snapshot.StreamSequence
}

// Three daemons form a cluster out of three small files: the ones that the
// README shows. A session is everywhere, and outlives any of them.
func TestThreeNodesFromThreeFiles(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	const hello = "Hello from a cluster of three."
	nodes := newNodes(t)
	for _, n := range nodes {
		n.launch()
	}
	for _, n := range nodes {
		answer := n.ready()
		require.Equal(t, "replicated×3", answer["durability"])
		require.Equal(t, "acknowledged appends survive the loss of fewer than half of 3 servers", answer["guarantee"])
	}
	first := nodes[0].startSession("first")
	require.Equal(t, hello, nodes[1].streamed(first))
	text, sequence := nodes[2].snapshot(first)
	require.Equal(t, hello, text)

	nodes[0].kill()
	second := nodes[1].startSession("second")
	require.Equal(t, hello, nodes[2].streamed(second))
	text, again := nodes[1].snapshot(first)
	require.Equal(t, hello, text)
	require.Equal(t, sequence, again)

	nodes[0].launch()
	nodes[0].ready()
	text, _ = nodes[0].snapshot(second)
	require.Equal(t, hello, text)
	third := nodes[0].startSession("third")
	require.Equal(t, hello, nodes[1].streamed(third))

	// All are killed, and come back one after the other.
	for _, n := range nodes {
		n.kill()
	}
	nodes[2].launch()
	require.Eventually(t, func() bool {
		return strings.Contains(nodes[2].logs.String(), "waiting for most servers of the NATS cluster")
	}, clusterPatience, 20*time.Millisecond)
	nodes[0].launch()
	for _, n := range []*node{nodes[0], nodes[2]} {
		n.ready()
		require.Equal(t, hello, n.streamed(third))
	}
	nodes[1].launch()
	nodes[1].ready()
	for _, n := range nodes {
		n.stop()
	}
}

// Errors in a node's configuration are reported before it waits for other nodes.
func TestClusterRefusals(t *testing.T) {
	t.Parallel()
	for want, env := range map[string]string{
		"nats.cluster.listen: 0.0.0.0:6222 is not a loopback address: set nats.cluster.user and password, or tls, or give --force-unauthenticated": "HELIX_NATS_CLUSTER_LISTEN=0.0.0.0:6222 HELIX_NATS_CLUSTER_USER= HELIX_NATS_CLUSTER_PASSWORD=",
		"nats.replicas: must not be more than the servers":                                                  "HELIX_NATS_CLUSTER_ROUTES=nats://127.0.0.1:1",
		"nats.replicas: needs nats.url or nats.cluster.listen: one embedded server keeps one replica":       "HELIX_NATS_CLUSTER_LISTEN= HELIX_NATS_CLUSTER_ROUTES= HELIX_NATS_CLUSTER_USER= HELIX_NATS_CLUSTER_PASSWORD=",
		"nats.websocket.listen: 0.0.0.0:1 is not a loopback address: set nats.user and nats.password, or g": "HELIX_NATS_WEBSOCKET_LISTEN=0.0.0.0:1",
		"nats.websocket.listen: 0.0.0.0:1 is not a loopback address: set nats.websocket.cert and key, or g": "HELIX_NATS_WEBSOCKET_LISTEN=0.0.0.0:1 HELIX_NATS_USER=u HELIX_NATS_PASSWORD=p",
	} {
		cmd := exec.CommandContext(t.Context(), program(t), "serve", "--listen", "127.0.0.1:0", "--data-dir", t.TempDir(),
			"--config", "../cmd/helixd/examples/cluster/node1.yaml")
		cmd.Env = append(append(os.Environ(), "HELIX_TOKEN=t", "HELIX_CLUSTER_PASSWORD=p"), strings.Fields(env)...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, want)
		require.Contains(t, string(out), want)
	}
}
