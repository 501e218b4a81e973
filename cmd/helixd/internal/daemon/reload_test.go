package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/cli/operate"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
)

// rewrite puts another text into a file of writeConfig, after what that began
// it with.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	lines := strings.SplitAfterN(string(old), "\n", 4)
	require.NoError(t, os.WriteFile(path+".new", []byte(strings.Join(lines[:3], "")+text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// reloaded asks for a reload, which is refused unless status is 200.
func reloaded(t *testing.T, d *Daemon, token string, status int) (done api.Reloaded, answer string) {
	t.Helper()
	got, answer := ask(t, http.MethodPost, d.URL+"/admin/reload", token, "", "{}")
	require.Equal(t, status, got, answer)
	require.NoError(t, json.Unmarshal([]byte(answer), &done))
	return done, answer
}

const (
	agentsFile = "auth: {tokens: [{token: %s}]}\nagents: {%s: {model: {provider: scripted, script: [{text: hello}]}}}\n"
	brokenFile = "auth: {tokens: [{token: fresh}]}\nagents:\n  b: {model: {provider: acme, name: m}}\n  c: {maxSteps: x}\n"
)

// The key of tickets is read once, at the start, unlike what is beside it.
func TestReloadable(t *testing.T) {
	for key, want := range map[string]bool{"auth.tokens": true, "auth.jwt.issuer": true, "auth.ticketKey": false, "agents": true, "listen": false} {
		require.Equal(t, want, reloadable(key), key)
	}
}

// TestReload: tokens count at once, an invalid file changes nothing, and what
// needs a restart is named.
func TestReload(t *testing.T) {
	t.Parallel()
	logs, hangups := &logBuffer{}, make(chan os.Signal, 1)
	path := clitest.Config(t, fmt.Sprintf(agentsFile, "old", "a"))
	d := serveFile(t, path, logs, hangups, "--log-format=json")
	status := func(token string) int {
		code, _ := ask(t, http.MethodGet, d.URL+"/sessions", token, "", "")
		return code
	}
	start := func(token, agent string) int {
		code, _ := ask(t, http.MethodPost, d.URL+"/start", token, "", `{"sessionId":"s-`+agent+`","agentType":"`+agent+`","message":"go"}`)
		return code
	}
	require.Equal(t, 200, status("old"))

	rewrite(t, path, brokenFile)
	_, answer := reloaded(t, d, "old", 409)
	require.Contains(t, answer, path+":6: agents.b.model.provider: must be anthropic")
	require.Contains(t, answer, path+":7: agents.c.maxSteps: must be an integer")
	require.Contains(t, answer, `"code":"INVALID_CONFIG"`)
	require.Equal(t, "ERROR", logs.line(t, "configuration refused: nothing has changed")["level"])
	require.Equal(t, []int{200, 401, 200}, []int{status("old"), status("fresh"), start("old", "a")})

	rewrite(t, path, fmt.Sprintf(agentsFile, "fresh", "b")+"disk: {minFree: 2GiB}\ndebug: {pprof: true}\nchat: {strictParts: false}\n")
	done, _ := reloaded(t, d, "old", 200)
	require.Equal(t, api.Reloaded{Agents: []string{"b"}, NeedsRestart: []string{"debug.pprof", "disk.minFree"}}, done)
	require.Equal(t, []int{401, 200}, []int{status("old"), status("fresh")})
	require.Equal(t, []int{404, 200}, []int{start("fresh", "a"), start("fresh", "b")})

	rewrite(t, path, "auth: {allowUnauthenticated: true}\n")
	_, answer = reloaded(t, d, "fresh", 409)
	require.Contains(t, answer, path+":4: auth: needs a restart")
	require.Equal(t, []int{401, 200}, []int{status(""), status("fresh")})

	rewrite(t, path, fmt.Sprintf(agentsFile, "newest", "c"))
	hangups <- syscall.SIGHUP
	require.Eventually(t, func() bool { return status("newest") == 200 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, 401, status("fresh"))
}

// TestReloadsLoseNoRun: each run comes to its end, by the agents of one moment.
func TestReloadsLoseNoRun(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const runners = 6
	reloads, runsEach := testkit.Times(50), testkit.Times(10)
	file := func(version int) string {
		turn := fmt.Sprintf("{toolCalls: [{name: note, arguments: {version: %[1]d}}]}", version)
		return fmt.Sprintf("auth: {tokens: [{token: t}]}\nagents:\n  a:\n    model: {provider: scripted, scriptDelay: 2ms, script: [%[1]s, %[1]s, {text: 'version %[2]d'}]}\n"+
			"    tools: {note: {http: {url: 'http://127.0.0.1:1/'}}}\n", turn, version)
	}
	path := clitest.Config(t, file(0))
	d := serveFile(t, path, io.Discard, nil)
	var over atomic.Bool
	var starting, reloading sync.WaitGroup
	count := 0
	reloading.Go(func() {
		for ; count < reloads || !over.Load(); count++ {
			rewrite(t, path, file(count))
			reloaded(t, d, "t", 200)
		}
	})
	for i := range runners {
		starting.Go(func() {
			for j := range runsEach {
				id := fmt.Sprintf("s-%d-%d", i, j)
				code, answer := ask(t, http.MethodPost, d.URL+"/start", "t", "", `{"sessionId":"`+id+`","agentType":"a","message":"go"}`)
				require.Equal(t, 200, code, answer)
				ask(t, http.MethodGet, d.URL+"/sse?sessionId="+id, "t", "", "") // it ends with the run
			}
		})
	}
	starting.Wait()
	over.Store(true)
	reloading.Wait()
	for i := range runners {
		for j := range runsEach {
			_, answer := ask(t, http.MethodGet, fmt.Sprintf("%s/sessions/s-%d-%d/state", d.URL, i, j), "t", "", "")
			var got struct {
				State struct {
					Status   string
					Messages []struct {
						Content   string
						ToolCalls []struct{ Arguments json.RawMessage }
					}
				}
			}
			require.NoError(t, json.Unmarshal([]byte(answer), &got))
			require.Equal(t, "completed", got.State.Status, answer)
			last := got.State.Messages[len(got.State.Messages)-1].Content
			version, ok := strings.CutPrefix(last, "version ")
			require.True(t, ok, answer)
			for _, m := range got.State.Messages {
				for _, call := range m.ToolCalls {
					require.JSONEq(t, `{"version":`+version+`}`, string(call.Arguments), "a run keeps the agents with which it began")
				}
			}
		}
	}
	require.GreaterOrEqual(t, count, reloads)
}

// TestReloadOfMCPServers: one that stays as it was continues, one that goes ends.
func TestReloadOfMCPServers(t *testing.T) {
	t.Parallel()
	kept, keptURL := newMCP(t)
	gone, goneURL := newMCP(t)
	server := func(name, url string) string {
		return fmt.Sprintf("{name: %s, url: %q, headers: {Authorization: hunter2}}", name, url)
	}
	file := func(prompt string, servers ...string) string {
		return "auth: {tokens: [{token: t}]}\nagents:\n  a:\n    systemPrompt: " + prompt +
			"\n    model: {provider: scripted, script: [{toolCalls: [{name: kept_hello, arguments: {name: you}}]}, {text: done}]}\n" +
			"    mcp: [" + strings.Join(servers, ", ") + "]\n"
	}
	path := clitest.Config(t, file("one", server("kept", keptURL), server("gone", goneURL)))
	d := serveFile(t, path, io.Discard, nil)
	before := slices.Collect(kept.Sessions())
	require.Len(t, before, 1)
	require.Len(t, slices.Collect(gone.Sessions()), 1)

	rewrite(t, path, file("two", server("kept", keptURL), server("broken", "http://127.0.0.1:1/")))
	_, answer := reloaded(t, d, "t", 409)
	require.Contains(t, answer, "agents.a.mcp[1]: mcptool: server broken")
	require.NotContains(t, answer, "hunter2")

	rewrite(t, path, file("two", server("kept", keptURL)))
	reloaded(t, d, "t", 200)
	require.Eventually(t, func() bool { return len(slices.Collect(gone.Sessions())) == 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, before, slices.Collect(kept.Sessions()))
	code, answer := ask(t, http.MethodPost, d.URL+"/start", "t", "", `{"sessionId":"s","agentType":"a","message":"go"}`)
	require.Equal(t, 200, code, answer)
	_, stream := ask(t, http.MethodGet, d.URL+"/sse?sessionId=s", "t", "", "")
	require.Contains(t, stream, `"result":"hello, you"`)
}

// TestReloadCommand prints what came of it.
func TestReloadCommand(t *testing.T) {
	t.Parallel()
	path := clitest.Config(t, fmt.Sprintf(agentsFile, "t", "a"))
	d := serveFile(t, path, io.Discard, nil)
	rewrite(t, path, fmt.Sprintf(agentsFile, "t", "b")+"drainTimeout: 3s\n")
	run := func(args ...string) (string, error) {
		out, _, err := clitest.Run[operate.Commands](t, "", append([]string{"reload", "--server", d.URL, "--token", "t"}, args...)...)
		return out, err
	}
	out, err := run()
	require.NoError(t, err)
	require.Equal(t, "agents: b\nneeds a restart: drainTimeout\n", out)
	out, err = run("--json")
	require.NoError(t, err)
	require.JSONEq(t, `{"agents":["b"],"needsRestart":["drainTimeout"]}`, out)
	rewrite(t, path, brokenFile)
	_, err = run()
	require.ErrorContains(t, err, "agents.c.maxSteps: must be an integer")
}

// TestPProf: profiles are for administrators, and only where they are wanted.
func TestPProf(t *testing.T) {
	t.Parallel()
	const tokens = "auth: {tokens: [{token: admin, operations: [admin]}, {token: user, operations: [chat]}]}\n"
	d := serveFile(t, clitest.Config(t, tokens+"debug: {pprof: true}\n"), io.Discard, nil)
	for _, page := range []string{"", "heap?gc=1&debug=1", "goroutine?debug=1", "cmdline", "symbol"} {
		code, answer := ask(t, http.MethodGet, d.URL+"/debug/pprof/"+page, "admin", "", "")
		require.Equal(t, 200, code, page)
		require.NotEmpty(t, answer)
		code, _ = ask(t, http.MethodGet, d.URL+"/debug/pprof/"+page, "user", "", "")
		require.Equal(t, 403, code, page)
		code, _ = ask(t, http.MethodGet, d.URL+"/debug/pprof/"+page, "", "", "")
		require.Equal(t, 401, code, page)
	}
	d = serveFile(t, clitest.Config(t, tokens), io.Discard, nil)
	code, _ := ask(t, http.MethodGet, d.URL+"/debug/pprof/", "admin", "", "")
	require.Equal(t, 404, code)
}
