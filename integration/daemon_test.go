package integration_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// buildDir holds the command while the tests run.
var buildDir string

func TestMain(m *testing.M) {
	testkit.AtOnce(8)
	var err error
	if buildDir, err = os.MkdirTemp("", "helixd"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(testkit.InMemory(m), goleak.Cleanup(func(code int) {
		os.RemoveAll(buildDir)
		os.Exit(code)
	}))
}

// binary builds the command once, unless HELIXD is its path.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("HELIXD"); path != "" {
		return path, nil
	}
	path := filepath.Join(buildDir, "helixd")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/helixd").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// program is the path of the command.
func program(t *testing.T) string {
	t.Helper()
	path, err := binary()
	require.NoError(t, err)
	return path
}

// configFile writes a configuration and returns its path.
func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// daemon is helixd as its own process.
type daemon struct {
	t    *testing.T
	url  string
	path string // of the program; empty: today's
	args []string
	env  []string // beside the process's own
	logs *testkit.Log
	cmd  *exec.Cmd
}

// newDaemon prepares a daemon on a free port. It does not start it. A short run does not
// build one.
func newDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	testkit.Slow(t)
	address := freeAddress(t)
	d := &daemon{t: t, url: "http://" + address, args: append(args, "--listen", address), logs: new(testkit.Log)}
	t.Cleanup(func() {
		d.kill()
		if t.Failed() {
			t.Logf("the daemon's log:\n%s", d.logs)
		}
	})
	return d
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := deployment.FreeAddress()
	require.NoError(t, err)
	return address
}

// launch runs the daemon and does not wait for it.
func (d *daemon) launch() {
	d.t.Helper()
	path := d.path
	if path == "" {
		path = program(d.t)
	}
	d.cmd = exec.Command(path, d.args...)
	d.cmd.Dir = d.t.TempDir()
	d.cmd.Env = append(os.Environ(), d.env...)
	d.cmd.Stdout, d.cmd.Stderr = d.logs, d.logs
	require.NoError(d.t, d.cmd.Start())
}

// start runs the daemon and waits until it is ready.
func (d *daemon) start() {
	d.t.Helper()
	d.launch()
	require.Eventually(d.t, func() bool {
		resp, err := client.Get(d.url + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, clusterPatience, 5*time.Millisecond, "the daemon does not get ready: %s", d.logs)
}

// kill ends the daemon's process as the kernel would, if it runs.
func (d *daemon) kill() {
	if d.cmd != nil && d.cmd.ProcessState == nil {
		d.cmd.Process.Kill()
		d.cmd.Wait()
	}
}

// stop ends the daemon as its operator would.
func (d *daemon) stop() {
	d.t.Helper()
	require.NoError(d.t, d.cmd.Process.Signal(os.Interrupt))
	require.NoError(d.t, d.cmd.Wait())
}

// client does not keep connections: the servers come and go.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask makes a request. fields are names and values of its header.
func ask(ctx context.Context, method, url, body string, fields ...string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return client.Do(r)
}

// askWhole is ask that reads the body of the answer.
func askWhole(ctx context.Context, method, url, body string, fields ...string) (resp *http.Response, answer []byte, err error) {
	resp, err = ask(ctx, method, url, body, fields...)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp, answer, err
}

// raw returns the body of an answer with 200.
func (d *daemon) raw(path string) []byte {
	d.t.Helper()
	resp, body, err := askWhole(d.t.Context(), http.MethodGet, d.url+path, "")
	require.NoError(d.t, err)
	require.Equal(d.t, http.StatusOK, resp.StatusCode, "%s", body)
	return body
}

// post sends JSON and returns the status and the decoded answer.
func (d *daemon) post(path string, body any) (int, map[string]any) {
	d.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(d.t, err)
	resp, err := client.Post(d.url+path, "application/json", bytes.NewReader(raw))
	require.NoError(d.t, err)
	return d.answer(resp)
}

// get returns the status and the decoded answer.
func (d *daemon) get(path string) (int, map[string]any) {
	d.t.Helper()
	resp, err := client.Get(d.url + path)
	require.NoError(d.t, err)
	return d.answer(resp)
}

func (d *daemon) answer(resp *http.Response) (int, map[string]any) {
	d.t.Helper()
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(d.t, err)
	var out map[string]any
	require.NoError(d.t, json.Unmarshal(raw, &out), "%s", raw)
	return resp.StatusCode, out
}

// listed is what a daemon lists of its sessions once the rows have caught up
// with the log.
func (d *daemon) listed() (answer map[string]any) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		_, answer = d.get("/sessions")
		return answer["current"] == true
	}, 2*time.Minute, 10*time.Millisecond)
	return answer
}

// waitFor waits until a session has a status.
func (d *daemon) waitFor(session, want string) {
	d.t.Helper()
	var answer map[string]any
	require.Eventually(d.t, func() bool {
		_, answer = d.get("/status?sessionId=" + session)
		return answer["status"] == want
	}, clusterPatience, 10*time.Millisecond, "%s: %v", session, &answer)
}

// ok posts what must be answered with 200, and returns the answer.
func (d *daemon) ok(path string, body any) map[string]any {
	d.t.Helper()
	status, answer := d.post(path, body)
	require.Equal(d.t, http.StatusOK, status, "%s %v: %v", path, body, answer)
	return answer
}
