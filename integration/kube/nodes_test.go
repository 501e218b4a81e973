package kube

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// node is a helixd process with a container's settings.
type node struct {
	t    *testing.T
	url  string
	dir  string
	data string // the folder of its volume
	env  []string
	args []string
	logs *os.File
	cmd  *exec.Cmd
}

func (n *node) start(program string) {
	n.t.Helper()
	n.cmd = exec.Command(program, n.args...)
	n.cmd.Dir, n.cmd.Env, n.cmd.Stdout, n.cmd.Stderr = n.dir, n.env, n.logs, n.logs
	require.NoError(n.t, n.cmd.Start())
}

func (n *node) kill() {
	if n.cmd != nil && n.cmd.ProcessState == nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
	}
}

var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func (n *node) do(method, path, body string) (int, string) {
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.url+path, strings.NewReader(body))
	require.NoError(n.t, err)
	req.Header.Set("Authorization", "Bearer t")
	resp, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw)
}

// answers waits until a probe of the node has this status.
func (n *node) answers(path string, status int) {
	n.t.Helper()
	require.Eventually(n.t, func() bool { got, _ := n.do("GET", path, ""); return got == status }, 2*time.Minute, 20*time.Millisecond, "%s%s", n.url, path)
}

// text follows a session from after a sequence until it ends or until is true, and returns its
// text and the last sequence.
func (n *node) text(session string, after int, until func(text string) bool) (string, int) {
	n.t.Helper()
	req, err := http.NewRequestWithContext(n.t.Context(), "GET", n.url+"/sse?sessionId="+session+"&fromSequence="+strconv.Itoa(after), nil)
	require.NoError(n.t, err)
	req.Header.Set("Authorization", "Bearer t")
	resp, err := client.Do(req)
	require.NoError(n.t, err)
	defer resp.Body.Close()
	require.Equal(n.t, http.StatusOK, resp.StatusCode)
	var text strings.Builder
	last := after
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var event struct {
			Type     string
			Sequence int
			Chunk    struct{ Type, Delta string }
		}
		require.NoError(n.t, json.Unmarshal(data, &event))
		last = max(last, event.Sequence)
		if event.Chunk.Type == "text_delta" {
			text.WriteString(event.Chunk.Delta)
		}
		if event.Type == "end" || until != nil && until(text.String()) {
			break
		}
	}
	return text.String(), last
}

// TestNodes starts the containers of the chart and of compose.yaml as processes: they form
// a cluster, a session that is started on one is read on another, and continues when
// the first is killed, which comes back with its volume.
func TestNodes(t *testing.T) {
	program := os.Getenv("HELIXD")
	if program == "" {
		program = filepath.Join(t.TempDir(), "helixd")
		build := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/helixd")
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Run("chart", func(t *testing.T) {
		t.Parallel()
		at := newPlace(t)
		nodes := at.prepare(t, ofChart(t, nil))
		tryNodes(t, program, nodes)
		const lost = 1
		nodes[lost].kill()
		require.NoError(t, os.RemoveAll(nodes[lost].data))
		args := []any{"--join", "--replace", "helixd-1"}
		tryLostVolume(t, program, nodes, lost, at.prepare(t, ofChart(t, values{"nodes": 5, "args": args})))
	})
	t.Run("compose", func(t *testing.T) {
		t.Parallel()
		tryNodes(t, program, newPlace(t).prepare(t, ofCompose(t)))
	})
}

// place is where a test's nodes are: a folder, and a network of its own below 127.
type place struct{ dir, network string }

func newPlace(t *testing.T) place {
	return place{t.TempDir(), "127." + strconv.Itoa(1+rand.IntN(250)) + "." + strconv.Itoa(1+rand.IntN(250))}
}

// prepare prepares nodes. Those of the same name have the same volume.
func (p place) prepare(t *testing.T, all []settings) (nodes []*node) {
	t.Helper()
	onLoopback(all, p.network, p.dir)
	for _, s := range all {
		n := &node{t: t, dir: filepath.Join(p.dir, s.name+"."+strconv.Itoa(len(all))+".container"), data: s.env["HELIX_DATA_DIR"]}
		require.NoError(t, os.Mkdir(n.dir, 0o700))
		file := filepath.Join(n.dir, "helix.yaml")
		require.NoError(t, os.WriteFile(file, []byte(s.config), 0o600))
		for _, arg := range s.args {
			n.args = append(n.args, strings.ReplaceAll(arg, configFile, file))
		}
		for key, value := range s.env {
			n.env = append(n.env, key+"="+value)
		}
		n.env = append(n.env, "TMPDIR="+n.dir, "HELIX_DISK_MIN_FREE=1MiB")
		n.url = "http://" + s.env["HELIX_LISTEN"]
		var err error
		n.logs, err = os.Create(filepath.Join(n.dir, "log"))
		require.NoError(t, err)
		nodes = append(nodes, n)
	}
	t.Cleanup(func() {
		for _, n := range nodes {
			n.kill()
			if logs, _ := os.ReadFile(n.logs.Name()); t.Failed() {
				t.Logf("%s:\n%s", n.dir, logs)
			}
			_ = n.logs.Close()
		}
	})
	return nodes
}

func tryNodes(t *testing.T, program string, nodes []*node) {
	nodes[0].start(program)
	nodes[0].answers("/healthz", http.StatusOK) // it is not restarted while it waits
	status, _ := nodes[0].do("GET", "/readyz", "")
	require.Equal(t, http.StatusServiceUnavailable, status, "and gets no requests")
	nodes[1].start(program)
	nodes[2].start(program)
	for _, n := range nodes {
		n.answers("/readyz", http.StatusOK)
	}
	_, ready := nodes[2].do("GET", "/readyz", "")
	require.Contains(t, ready, `"durability":"replicated×3"`)

	status, answer := nodes[0].do("POST", "/start", `{"sessionId":"s","agentType":"teller","message":"Hi"}`)
	require.Equal(t, http.StatusOK, status, answer)
	begin, cursor := nodes[2].text("s", 0, func(text string) bool { return strings.Contains(text, "three") })
	nodes[0].kill()
	rest, _ := nodes[2].text("s", cursor, nil)
	require.NotContains(t, begin, "sixteen", "the node was killed while it drove the run")
	require.Contains(t, rest, "sixteen.")
	whole, last := nodes[1].text("s", 0, nil)
	_, state := nodes[1].do("GET", "/sessions/s", "")
	require.Contains(t, state, `"status":"completed"`)

	nodes[0].start(program) // as the pod's successor, with the same name and volume
	nodes[0].answers("/readyz", http.StatusOK)
	again, lastAgain := nodes[0].text("s", 0, nil)
	require.Equal(t, whole, again)
	require.Equal(t, last, lastAgain)
}

// tryLostVolume does what clustering.md says about a lost volume: five are the pods after
// the chart's values were changed. Two new nodes take the lost one's place, which can't
// start with an empty volume.
func tryLostVolume(t *testing.T, program string, three []*node, lost int, five []*node) {
	whole, last := three[0].text("s", 0, nil)
	for _, n := range five[3:] {
		n.start(program)
	}
	again := five[lost]
	again.start(program)
	require.Error(t, again.cmd.Wait())
	logs, err := os.ReadFile(again.logs.Name())
	require.NoError(t, err)
	require.Contains(t, string(logs), "--replace helixd-1: this is helixd-1 itself")
	require.NoDirExists(t, filepath.Join(again.data, "jetstream"), "its server did not run")
	for _, n := range five[3:] {
		n.answers("/readyz", http.StatusOK)
	}
	require.Eventually(t, func() bool {
		_, ready := five[4].do("GET", "/readyz", "")
		return strings.Contains(ready, `"replicas":{"wanted":3,"present":3`) && !strings.Contains(ready, `"missing"`)
	}, 2*time.Minute, 100*time.Millisecond, "the replicas of the lost node are copied")
	for _, i := range []int{2, 0} { // Kubernetes restarts the others with the new settings
		three[i].kill()
		five[i].start(program)
		five[i].answers("/readyz", http.StatusOK)
		text, sequence := five[i].text("s", 0, nil)
		require.Equal(t, whole, text)
		require.Equal(t, last, sequence)
	}
}
