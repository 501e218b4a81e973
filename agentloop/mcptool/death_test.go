//go:build unix

package mcptool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/mcptool"
	"github.com/helixd/helixd/agentloop/model/upstream"
)

// gone reports whether there is no process, not even a dead one.
func gone(pid int) bool { return syscall.Kill(pid, 0) != nil }

func TestAKilledServerIsStartedAgain(t *testing.T) {
	server, dir := stdio(t)
	var log logs
	c := open(t, server, &mcptool.Options{Logger: log.logger()})
	first := pid(t, c)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, "the process is collected", func() bool { return gone(first) })
	second := pid(t, c)
	require.NotEqual(t, first, second)
	require.Equal(t, second, pid(t, c))
	require.Equal(t, 2, strings.Count(content(dir, "starts"), "\n"))
	eventually(t, "its end is logged", func() bool { return log.contain(`command="signal: killed"`) })
}

// begin has a call of s_slow under way, and returns how it will fail.
func begin(t *testing.T, c *mcptool.Client, dir string) <-chan error {
	t.Helper()
	failed, slow := make(chan error, 1), tool(t, c, "s_slow")
	go func() {
		_, err := slow.Execute(t.Context(), &agentloop.Call{}, json.RawMessage(`{}`))
		failed <- err
	}()
	eventually(t, "the call has begun", func() bool { return content(dir, "slow") == "started\n" })
	return failed
}

// A child of the server that holds its pipes neither hides its end nor is ours
// to kill.
func TestAKilledServerThatHasAChild(t *testing.T) {
	server, dir := stdio(t)
	server.Env[serverMode] = "parent"
	c := open(t, server, nil)
	first := pid(t, c)
	failed := begin(t, c, dir)
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	require.ErrorContains(t, <-failed, "its connection ended during the call")
	require.NotEqual(t, first, pid(t, c))
	require.NoError(t, c.Close())
	children := strings.Fields(content(dir, "children"))
	require.Len(t, children, 2)
	for _, child := range children {
		id, err := strconv.Atoi(child)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(id, syscall.SIGKILL), "it was alive")
	}
}

// However a kill and a call meet, the call is carried out or says that it may
// not have been.
func TestACallMeetsAKill(t *testing.T) {
	server, _ := stdio(t)
	c := open(t, server, nil)
	for range 20 {
		require.NoError(t, syscall.Kill(pid(t, c), syscall.SIGKILL))
		if _, err := call(t, t.Context(), c, "s_text", `{}`); err != nil {
			require.ErrorContains(t, err, "whether it was carried out is not known")
		}
	}
}

func TestACallInFlightFailsWithItsServer(t *testing.T) {
	server, _ := stdio(t)
	c := open(t, server, nil)
	first := pid(t, c)
	_, err := call(t, t.Context(), c, "s_die", `{}`)
	require.ErrorContains(t, err, "its connection ended during the call")
	require.NotEqual(t, first, pid(t, c))
}

func TestAServerThatDoesNotStartIsLeftAloneForAWhile(t *testing.T) {
	server, dir := stdio(t)
	c := open(t, server, nil)
	first := pid(t, c)
	broken := filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(broken, nil, 0o600))
	require.NoError(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, "the process is collected", func() bool { return gone(first) })
	const calls = 100
	for range calls {
		_, err := call(t, t.Context(), c, "s_text", `{}`)
		require.EqualError(t, err, "the MCP server is down")
		if cause := upstream.Text(err); cause != "" { // the first call that finds it dead has none
			require.Regexp(t, `^\S+: .*exit status \d+.* \(check mcp.command of s\)$`, cause)
		}
	}
	require.Less(t, strings.Count(content(dir, "starts"), "\n"), calls/2, "not one start a call")
	require.NoError(t, os.Remove(broken))
	eventually(t, "it is started again", func() bool {
		_, err := call(t, t.Context(), c, "s_text", `{}`)
		return err == nil
	})
}

func TestAnHTTPServerThatForgotTheSession(t *testing.T) {
	dir := t.TempDir()
	w := newWeb(t, newServer(dir), nil)
	c := open(t, mcptool.Server{Name: "s", URL: w.URL}, nil)
	pid(t, c)
	w.serve(t, newServer(dir), nil)
	pid(t, c)
	require.Equal(t, "xx", content(dir, "echoes"), "each call is carried out once")
}

// A call in flight is not carried out again because another one found the
// session gone.
func TestACallInFlightIsNotRepeated(t *testing.T) {
	dir := t.TempDir()
	w := newWeb(t, newServer(dir), nil)
	c := open(t, mcptool.Server{Name: "s", URL: w.URL}, nil)
	failed := begin(t, c, dir)
	w.serve(t, newServer(dir), nil)
	pid(t, c)
	require.ErrorContains(t, <-failed, "whether it was carried out is not known")
	require.Equal(t, 1, strings.Count(content(dir, "slow"), "started"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
}

// The SDK asks for the rest of an answer that is cut off. A server that has nothing of it
// had the call.
func TestACallWhoseAnswerIsCutOffIsNotRepeated(t *testing.T) {
	w := newWeb(t, newServer(t.TempDir()), nil)
	whole, calls := *w.handler.Load(), atomic.Int32{}
	cut := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.Method == http.MethodGet, bytes.Contains(body, []byte(`"server/discover"`)): // later protocols have no GET
			http.NotFound(rw, r)
		case bytes.Contains(body, []byte(`"tools/call"`)):
			calls.Add(1)
			rw.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(rw, "id: 1\nretry: 1\ndata:\n\n")
		default:
			whole.ServeHTTP(rw, r)
		}
	}))
	w.handler.Store(&cut)
	c := open(t, mcptool.Server{Name: "s", URL: w.URL}, nil)
	_, err := call(t, t.Context(), c, "s_text", `{}`)
	require.ErrorContains(t, err, "whether it was carried out is not known")
	require.EqualValues(t, 1, calls.Load())
}

func TestAnHTTPServerThatIsAway(t *testing.T) {
	w := newWeb(t, newServer(t.TempDir()), nil)
	c := open(t, mcptool.Server{Name: "s", URL: w.URL}, nil)
	unavailable := http.Handler(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		http.Error(rw, "try later", http.StatusServiceUnavailable)
	}))
	handler := w.handler.Swap(&unavailable)
	_, err := call(t, t.Context(), c, "s_text", `{}`)
	require.EqualError(t, err, "the MCP server answered with status 503 Service Unavailable")
	host := strings.TrimPrefix(w.URL, "http://")
	require.Equal(t, host+" answered 503 Service Unavailable (check mcp.url of s)", upstream.Text(err))
	w.handler.Store(handler)
	pid(t, c)
	w.Close()
	_, err = call(t, t.Context(), c, "s_text", `{}`) // it may still be on an old connection
	require.Error(t, err)
	_, err = call(t, t.Context(), c, "s_text", `{}`)
	require.EqualError(t, err, "the MCP server could not be reached")
	require.Equal(t, "dial "+host+": connection refused (check mcp.url of s)", upstream.Text(err))
}

// A server that hangs costs a call its time and no more.
func TestAServerThatDoesNotRead(t *testing.T) {
	server, _ := stdio(t)
	c := open(t, server, &mcptool.Options{StopTimeout: 10 * time.Millisecond})
	id := pid(t, c)
	require.NoError(t, syscall.Kill(id, syscall.SIGSTOP))
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`) // more than a pipe holds
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := tool(t, c, "s_echo").Execute(ctx, &agentloop.Call{}, args)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	require.NoError(t, c.Close())
	require.True(t, gone(id))
}

func TestAStubbornServerIsKilled(t *testing.T) {
	server, _ := stdio(t)
	server.Env[serverMode] = "stubborn"
	c := open(t, server, &mcptool.Options{StopTimeout: 10 * time.Millisecond})
	id := pid(t, c)
	require.NoError(t, c.Close())
	require.True(t, gone(id), "close waits for the process")
}

func TestAChangedListIsLeftAlone(t *testing.T) {
	server, _ := stdio(t)
	var log logs
	c := open(t, server, &mcptool.Options{Logger: log.logger()})
	before := len(c.Tools())
	_, err := call(t, t.Context(), c, "s_grow", `{}`)
	require.NoError(t, err)
	eventually(t, "it is logged", func() bool { return log.contain("list of tools has changed") })
	require.Len(t, c.Tools(), before)
}
