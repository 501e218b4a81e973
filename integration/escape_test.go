package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/integration/testkit"
)

// prisoner is a daemon whose agent wants to get out of its workspace, and what
// there is outside.
type prisoner struct {
	*daemon
	t       *testing.T
	dir     string // of everything
	outside string // a folder that everybody may use
	shell   error  // why there is none here
}

const (
	loot   = "loot-9b1d"                   // in a file outside
	apiKey = "sk-of-the-daemon-0123456789" // in the daemon's environment
)

func imprison(t *testing.T) *prisoner {
	t.Helper()
	dir := t.TempDir()
	for up := dir; up != filepath.Clean(os.TempDir()) && up != "/"; up = filepath.Dir(up) {
		require.NoError(t, os.Chmod(up, 0o755)) // a root's commands run as somebody else
	}
	p := &prisoner{t: t, dir: dir, outside: filepath.Join(dir, "outside")}
	require.NoError(t, os.Mkdir(p.outside, 0o777))
	require.NoError(t, os.Chmod(p.outside, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(p.outside, "loot"), []byte(loot), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(p.outside, "loot"), 0o666))
	workspaces := filepath.Join(dir, "workspaces") // not below the daemon's data, which is nobody else's
	tried, err := local.New(workspaces, nil)
	require.NoError(t, err)
	p.shell = tried.ShellProblem()
	capabilities := "[fs, shell]"
	if p.shell != nil {
		capabilities = "[fs]"
	}
	file := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
agents:
  prisoner:
    maxSteps: 30
    workspace: {provider: local, capabilities: `+capabilities+`}
    model: {provider: openai, name: some-model, apiKey: "env:API_KEY", baseURL: "`+newModel(t, obedient)+`"}
workspaces:
  local: {dir: "`+workspaces+`", maxProcesses: 40, maxBytes: 16MiB}
`), 0o600))
	p.daemon = newDaemon(t, "serve", "--config", file, "--allow-unauthenticated", "--data-dir", filepath.Join(dir, "data"))
	p.env = append(p.env, "API_KEY="+apiKey)
	p.start()
	return p
}

// tries has the prisoner do something in a step, and returns what came of it.
func (p *prisoner) tries(t *testing.T, calls ...call) []string {
	t.Helper()
	p.say("cell", "prisoner", "", steps(calls))
	got := p.last("cell", len(calls))
	for i, result := range got {
		require.NotContains(t, result, loot)
		require.NotContains(t, result, apiKey)
		if calls[i].Name != "workspace_run" { // a command may know where on the machine it is
			require.NotContains(t, result, p.dir)
		}
	}
	return got
}

// runs has the prisoner run a command, which limits may end.
func (p *prisoner) runs(t *testing.T, command string, seconds int) (o workspace.Outcome) {
	t.Helper()
	got := p.tries(t, call{"workspace_run", map[string]any{"command": command, "timeoutSeconds": seconds}})[0]
	require.NoError(t, json.Unmarshal([]byte(got), &o), got)
	return o
}

// untouched requires that nothing has come or gone outside.
func (p *prisoner) untouched(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(p.outside)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	text, err := os.ReadFile(filepath.Join(p.outside, "loot"))
	require.NoError(t, err)
	require.Equal(t, loot, string(text))
}

// An agent tries to get out of its workspace, and to bring down what keeps it
// there. Each try is refused or ended, with an error that says why; nothing
// outside is read or written; and the daemon continues.
func TestEscapes(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	p := imprison(t)
	t.Run("by paths", p.byPaths)
	t.Run("by races", p.byRaces)
	t.Run("by commands", func(t *testing.T) {
		if p.shell != nil {
			t.Skipf("no commands: %v", p.shell)
		}
		t.Run("links", p.byLinks)
		t.Run("secrets", p.bySecrets)
		t.Run("network", p.byNetwork)
		t.Run("output", p.byOutput)
		t.Run("files", p.byFiles)
		t.Run("time", p.byTime)
		t.Run("processes", p.byProcesses)
		require.Equal(t, "still here\n", p.runs(t, "echo still here", 0).Stdout)
	})
	p.untouched(t)
	status, _ := p.get("/readyz")
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, p.logs.String(), "panic")
	size := 0
	for _, r := range p.records("cell") {
		size += len(r.Payload)
	}
	require.Less(t, size, 4<<20, "of its input and output little is kept")
}

func (p *prisoner) byPaths(t *testing.T) {
	const up, absolute = "leads out of the workspace: it goes up", "leads out of the workspace: it is absolute"
	p.tries(t, write("mine", "mine"))
	refused := []struct {
		call call
		want string
	}{
		{read("../../../helix.yaml"), up},
		{read("a/../../b"), up},
		{read("/etc/passwd"), absolute},
		{write("../mine", "x"), up},
		{write("/etc/new", "x"), absolute},
		{edit("./../mine", "mine", "yours"), up},
		{list(".."), up},
		{list("/"), absolute},
		{call{"workspace_delete_file", map[string]any{"path": ".."}}, up},
		{call{"workspace_move_file", map[string]any{"from": "mine", "to": "../mine"}}, up},
		{call{"workspace_move_file", map[string]any{"from": "/etc/passwd", "to": "passwd"}}, absolute},
		{call{"workspace_search_files", map[string]any{"pattern": "root", "path": "/etc"}}, absolute},
		{read(`..\..\helix.yaml`), "the name is not valid: it has a backslash"},
		{read("mine\x00"), "the name is not valid: it has a control character"},
		{read(".helix/mine"), "leads out of the workspace"}, // what is the workspace's own
	}
	var calls []call
	for _, r := range refused {
		calls = append(calls, r.call)
	}
	for i, got := range p.tries(t, calls...) {
		require.Contains(t, got, refused[i].want, "%v", refused[i].call)
	}
	require.Equal(t, `{"path":".","entries":[{"name":"mine","size":4}]}`, p.tries(t, list("."))[0])
}

// byLinks follows symbolic links that it has made itself.
func (p *prisoner) byLinks(t *testing.T) {
	o := p.runs(t, fmt.Sprintf("ln -s %s out; ln -s out/loot twice; ln -s / root; ln -s ../../.. up; ln -s /proc/self/root proc; ln -s %[1]s/new new", p.outside), 0)
	require.Zero(t, o.ExitCode, o.Stderr)
	calls := []call{
		read("out/loot"), read("twice"), read("root/etc/passwd"), read("up/x"), read("proc/etc/passwd"), read("new"), list("out"),
		write("out/new", "x"), write("up/new", "x"), edit("out/loot", loot[:4], "x"),
		{"workspace_delete_file", map[string]any{"path": "out/loot"}},
		{"workspace_move_file", map[string]any{"from": "out/loot", "to": "loot"}},
		{"workspace_move_file", map[string]any{"from": "mine", "to": "out/mine"}},
	}
	for i, got := range p.tries(t, calls...) {
		require.Contains(t, got, "leads out of the workspace", "%v", calls[i])
	}
	p.untouched(t)
	// A link itself is the agent's: it may replace and remove it.
	require.Equal(t, []string{`{"path":"new","size":1}`}, p.tries(t, write("new", "x")))
	require.Zero(t, p.runs(t, "rm out twice root up proc new", 0).ExitCode)
	p.untouched(t)
}

// byRaces uses files through a name that somebody else exchanges as fast as they
// can, as another command could: a link to its own folder, and one to outside.
func (p *prisoner) byRaces(t *testing.T) {
	p.tries(t, write("real/loot", "mine"))
	own, err := filepath.Glob(filepath.Join(p.dir, "workspaces", "trees", "*", "files", "*"))
	require.NoError(t, err)
	require.Len(t, own, 1)
	var exchanges atomic.Int64
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			for _, target := range []string{p.outside, "real"} {
				_ = os.Symlink(target, filepath.Join(own[0], "next"))
				_ = os.Rename(filepath.Join(own[0], "next"), filepath.Join(own[0], "at"))
				exchanges.Add(1)
				select {
				case <-end:
					return
				case <-time.After(time.Millisecond): // about as long as a call takes, of which each has several steps
				}
			}
		}
	}()
	defer func() { close(end); <-ended }()
	require.Eventually(t, func() bool { return exchanges.Load() > 0 }, time.Minute, time.Millisecond)
	var calls []call
	for i := range 20 {
		name := fmt.Sprint("at/new", i)
		calls = append(calls, read("at/loot"), list("at"), write(name, "x"), edit("at/loot", "mine", "mine, too"),
			call{"workspace_move_file", map[string]any{"from": name, "to": "at/newer"}}, call{"workspace_delete_file", map[string]any{"path": "at/newer"}})
	}
	refused := 0
	for _, got := range p.tries(t, calls...) {
		refused += strings.Count(got, "leads out of the workspace")
	}
	t.Logf("%d of %d calls met the link to outside, which was exchanged %d times", refused, len(calls), exchanges.Load())
	p.untouched(t)
}

// bySecrets looks for what the daemon knows.
func (p *prisoner) bySecrets(t *testing.T) {
	require.Contains(t, p.runs(t, "env; cat /proc/[0-9]*/environ 2>/dev/null", 0).Stdout, "PATH=")
}

// byNetwork asks the daemon, which lets everyone on this machine in.
func (p *prisoner) byNetwork(t *testing.T) {
	address := strings.Split(strings.TrimPrefix(p.url, "http://"), ":")
	ask := fmt.Sprintf(`command -v bash >/dev/null && bash -c 'exec 3<>/dev/tcp/%s/%s && printf "GET /sessions HTTP/1.0\r\n\r\n" >&3 && cat <&3'; echo asked`, address[0], address[1])
	require.Equal(t, "asked\n", p.runs(t, ask, 30).Stdout)
}

// byOutput says more than anybody wants to hear.
func (p *prisoner) byOutput(t *testing.T) {
	o := p.runs(t, "yes", 0)
	require.Equal(t, "output", o.Stopped)
	require.True(t, o.Truncated)
	require.Less(t, len(o.Stdout), 2*workspace.MaxText)
	o = p.runs(t, "head -c 1000000 /dev/zero | tr '\\0' a; echo and so on >&2", 0)
	require.Zero(t, o.ExitCode)
	require.True(t, o.Truncated)
	require.Less(t, len(o.Stdout), 2*workspace.MaxText)
	require.Equal(t, "and so on\n", o.Stderr)
}

// byFiles writes more than it may.
func (p *prisoner) byFiles(t *testing.T) {
	require.Zero(t, p.runs(t, "head -c 9000000 /dev/zero >big", 0).ExitCode)
	require.Equal(t, "big: the file is too large: at most 8388608 bytes", p.tries(t, read("big"))[0])
	o := p.runs(t, "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero >big$i; sleep 0.1; done", 0)
	require.Equal(t, "quota", o.Stopped)
	require.Contains(t, p.tries(t, write("more", "x"))[0], "the workspace is full")
	require.Zero(t, p.runs(t, "rm big*", 0).ExitCode, "it may make room")
	require.Equal(t, `{"path":"more","size":1}`, p.tries(t, write("more", "x"))[0])
}

// byTime wants to stay for ever.
func (p *prisoner) byTime(t *testing.T) {
	forever := fmt.Sprint("sleep 6", time.Now().UnixNano()%1e9)
	o := p.runs(t, "(setsid "+forever+" &); trap '' TERM INT HUP; "+forever, 1)
	require.Equal(t, "timeout", o.Stopped)
	require.Empty(t, alive(t, forever))
}

// byProcesses throws fork bombs.
func (p *prisoner) byProcesses(t *testing.T) {
	forever := fmt.Sprint("sleep 7", time.Now().UnixNano()%1e9)
	for _, bomb := range []string{
		"while :; do " + forever + " & done",
		": " + forever + "; bomb() { bomb | bomb & }; bomb; " + forever,
	} {
		o := p.runs(t, bomb, 1)
		require.NotZero(t, o.ExitCode, "its own forks fail, or it is ended")
		require.Empty(t, alive(t, forever), "all of it is dead")
	}
}

// alive are the processes in whose command line a text is.
func alive(t *testing.T, text string) (all []string) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, name := range processes {
		line, err := os.ReadFile(name)
		if err == nil && strings.Contains(strings.ReplaceAll(string(line), "\x00", " "), text) {
			all = append(all, name)
		}
	}
	return all
}
