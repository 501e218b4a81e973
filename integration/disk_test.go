//go:build linux

package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

const (
	smallDisk = 96 << 20
	leastFree = 32 << 20
)

// smallFolder is a separate file system. That needs root.
func smallFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", smallDisk), "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("a small disk can't be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
	return dir
}

// fillUp leaves so many bytes free, and returns how to make room again.
func fillUp(t *testing.T, dir string, leave uint64) (empty func()) {
	t.Helper()
	ballast := filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	require.NoError(t, err)
	defer f.Close()
	for size := 1 << 20; size > 0; {
		var s syscall.Statfs_t
		require.NoError(t, syscall.Statfs(dir, &s))
		if free := s.Bavail * uint64(s.Bsize); free <= leave {
			break
		} else if free-leave < uint64(size) {
			size /= 2
			continue
		}
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) { // others write, too
			break
		} else {
			require.NoError(t, err)
		}
	}
	return func() { require.NoError(t, os.Remove(ballast)) }
}

// heldTool is a tool whose calls wait.
type heldTool struct {
	url   string
	calls atomic.Int32
	came  chan struct{}
	leave chan struct{}
}

func newHeldTool(t *testing.T) *heldTool {
	t.Helper()
	h := &heldTool{came: make(chan struct{}, 16), leave: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		h.came <- struct{}{}
		select {
		case <-h.leave:
		case <-r.Context().Done():
		}
		io.WriteString(w, `{"result":"there"}`)
	}))
	t.Cleanup(server.Close)
	h.url = server.URL
	return h
}

// smallDaemon is a daemon on a small disk, whose agent walker calls the tool
// once and then speaks.
func smallDaemon(t *testing.T, dir string, tool *heldTool) *daemon {
	t.Helper()
	file := configFile(t, `
dataDir: `+filepath.Join(dir, "data")+`
disk: {minFree: `+fmt.Sprint(leastFree)+`}
readModels: {enabled: false}
agents:
  walker:
    model: {provider: scripted, script: [{text: "I walk.", toolCalls: [{name: walk}]}, {text: "I have arrived."}]}
    tools:
      walk: {description: One step., inputSchema: {type: object}, http: {url: "`+tool.url+`"}, timeout: 10m}
`)
	d := newDaemon(t, "serve", "--config", file, "--allow-unauthenticated")
	d.start()
	return d
}

// do returns the answer to a request; a status of 0 means none.
func (d *daemon) do(method, path, body string) (status int, header http.Header, answer map[string]any) {
	d.t.Helper()
	resp, err := ask(d.t.Context(), method, d.url+path, body)
	if err != nil {
		return 0, nil, nil
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&answer)
	return resp.StatusCode, resp.Header, answer
}

func (d *daemon) becomes(status int, path string) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		got, _, _ := d.do("GET", path, "")
		return got == status
	}, 2*time.Minute, 20*time.Millisecond, "%s does not become %d", path, status)
}

// arrived waits until the walker's run is finished, and checks that it continued where it
// was: no node claimed it again, and the tool was called once.
func arrived(t *testing.T, d *daemon, session string) {
	t.Helper()
	d.waitFor(session, "completed")
	records := d.raw("/sessions/" + session + "/records?dead=1")
	require.Equal(t, 1, bytes.Count(records, []byte(`"kind":"fact","type":"run_claimed"`)), "%s", records)
	require.NotContains(t, string(records), `"type":"truncated"`)
	require.NotContains(t, string(records), `"errorCode"`)
}

// With little room left a node takes nothing more from clients, and serves all
// that it has; its runs wait. It frees room when asked to, and continues by itself.
func TestANodeWithLittleRoomIsReadOnly(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir, tool := smallFolder(t), newHeldTool(t)
	d := smallDaemon(t, dir, tool)
	status, _, answer := d.do("POST", "/sessions/old/chunks", `[{"type":"text_delta","agentId":"old","agentType":"x","timestamp":1,"step":1,"delta":"hello"}]`)
	require.Equal(t, 200, status, "%v", answer)
	status, _, answer = d.do("POST", "/start", `{"sessionId":"s","agentType":"walker","message":"go"}`)
	require.Equal(t, 200, status, "%v", answer)
	<-tool.came

	empty := fillUp(t, dir, leastFree*3/4)
	d.becomes(503, "/readyz")
	_, _, answer = d.do("GET", "/readyz", "")
	require.Contains(t, answer["refuses"], "less than 32.0 MiB")
	close(tool.leave) // what it says has to wait
	for path, body := range map[string]string{
		"/start":             `{"sessionId":"new","agentType":"walker","message":"go"}`,
		"/sessions/old/end":  `{}`,
		"/interrupt":         `{"sessionId":"s"}`,
		"/sessions/old/fork": `{"sequence":1}`,
		"/sessions/x/chunks": `[{"type":"text_delta","agentId":"x","agentType":"x","timestamp":1,"step":1,"delta":"hello"}]`,
	} {
		status, header, answer := d.do("POST", path, body)
		require.Equal(t, 503, status, "%s: %v", path, answer)
		require.Equal(t, "READ_ONLY", answer["code"], path)
		require.NotEmpty(t, header.Get("Retry-After"), path)
	}
	for _, path := range []string{"/healthz", "/status?sessionId=s", "/chat/s/snapshot", "/sessions/old/state", "/sessions"} {
		status, _, answer := d.do("GET", path, "")
		require.Equal(t, 200, status, "%s: %v", path, answer)
	}
	_, _, answer = d.do("GET", "/status?sessionId=s", "")
	require.Equal(t, "running", answer["status"])
	status, _, answer = d.do("DELETE", "/sessions/old", "")
	require.Equal(t, 200, status, "requests that free space continue: %v", answer)

	empty()
	d.becomes(200, "/readyz")
	arrived(t, d, "s")
	require.EqualValues(t, 1, tool.calls.Load())
}

// A disk that others fill up to the last byte stops the embedded server itself.
// When there is room it restarts, in the process: nothing that was
// acknowledged is missing, and the run that waited continues where it was.
func TestANodeOutlivesAFullDisk(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir, tool := smallFolder(t), newHeldTool(t)
	d := smallDaemon(t, dir, tool)
	status, _, answer := d.do("POST", "/start", `{"sessionId":"s","agentType":"walker","message":"go"}`)
	require.Equal(t, 200, status, "%v", answer)
	<-tool.came

	chunk := `[{"type":"text_delta","agentId":"p","agentType":"x","timestamp":1,"step":1,"delta":"` + strings.Repeat("many words ", 2000) + `"}]`
	appended := 0
	status, _, answer = d.do("POST", "/sessions/p/chunks", chunk)
	require.Equal(t, 200, status, "%v", answer)
	appended++
	empty := fillUp(t, dir, 0)
	require.Eventually(t, func() bool {
		status, _, answer = d.do("POST", "/sessions/p/chunks", chunk)
		if status == 200 {
			appended++
		}
		return status == 503 && answer["code"] == "READ_ONLY"
	}, 2*time.Minute, time.Millisecond)
	require.Eventually(t, func() bool { // at first it may have seen little room
		_, _, answer = d.do("GET", "/readyz", "")
		refuses, _ := answer["refuses"].(string)
		return strings.Contains(refuses, "was full")
	}, 2*time.Minute, 20*time.Millisecond)
	d.becomes(503, "/readyz")
	status, _, _ = d.do("GET", "/healthz", "")
	require.Equal(t, 200, status)
	status, _, answer = d.do("DELETE", "/sessions/p", "")
	require.Equal(t, 503, status, "erasure would damage what it rewrites: %v", answer)
	require.Equal(t, "READ_ONLY", answer["code"])
	close(tool.leave)

	empty()
	d.becomes(200, "/readyz")
	arrived(t, d, "s")
	require.EqualValues(t, 1, tool.calls.Load())
	status, _, answer = d.do("POST", "/sessions/p/chunks", chunk)
	require.Equal(t, 200, status, "%v", answer)
	appended++
	records := d.raw("/sessions/p/records")
	require.GreaterOrEqual(t, bytes.Count(records, []byte(`"kind":"chunk","type":"text_delta"`)), appended, "%d were acknowledged", appended)
	require.Contains(t, d.logs.String(), "the embedded server has restarted")
}
