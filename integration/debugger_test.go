package integration_test

import (
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// securedConfig is of a daemon that wants tokens. What its agent slow says takes
// twenty seconds: time enough to stop it, however slow the machine is.
var securedConfig = `
auth:
  tokens:
    - {token: all-of-it, name: all, operations: ["*"], sessions: ["*"]}
    - {token: for-red, name: red, operations: ["*"], sessions: ["*"], tenant: red}
    - {token: for-ann, name: ann, operations: [debugger, sessions, search, records, status, stream], sessions: ["ann-*"]}
tenants: {red: {tokensPerDay: 23456}}
prices: {scripted: {input: 3, output: 15}}
agents:
  talker: {model: {provider: scripted, script: [{text: Fine.}]}}
  coder: {workspace: {provider: memory}, model: {provider: scripted, script: [{toolCalls: [{name: workspace_write_file, arguments: {path: notes.md, content: Hello}}]}, {text: Written.}]}}
  slow: {model: {provider: scripted, scriptDelay: 500ms, script: [{text: ` + strings.Repeat("word ", 40) + `}]}}
`

// TestDebugger uses the debugger in Chromium as people do, and compares what it
// shows with what the daemon says. It needs Chromium, node and what `make debugger` installs.
func TestDebugger(t *testing.T) {
	testkit.With(t, "HELIX_BROWSER", "debugger")
	runDebugger(t, "main.mjs")
}

// chromium returns where Chromium is: CHROMIUM says so, or PATH.
func chromium(t *testing.T) string {
	path, err := exec.LookPath(cmp.Or(os.Getenv("CHROMIUM"), "chromium"))
	require.NoError(t, err)
	return path
}

// runDebugger runs a program of the folder debugger beside a daemon with the
// demo agents, which it may kill and start again, and one that wants tokens.
func runDebugger(t *testing.T, program string) {
	browser := chromium(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(config, []byte(securedConfig), 0o600))
	demo := newDaemon(t, "dev", "--data-dir", filepath.Join(dir, "demo"), "--nats-listen", freeAddress(t))
	secured := newDaemon(t, "serve", "--config", config, "--data-dir", filepath.Join(dir, "secured"))
	demo.start()
	secured.start()
	lab, grows := newLabWorld(t), &labServer{t: t} // started when they are asked for

	world, err := json.Marshal(map[string]any{
		"demo":    demo.url,
		"secured": map[string]string{"url": secured.url, "all": "all-of-it", "ann": "for-ann", "red": "for-red"},
	})
	require.NoError(t, err)
	node := exec.CommandContext(t.Context(), "node", program, string(world))
	node.Dir = "debugger"
	node.Env = append(os.Environ(), "CHROMIUM="+browser)
	obey(t, node, func(command, argument string) any {
		switch command {
		case "start-lab":
			lab.d.start()
			return lab.d.url
		case "run-lab":
			return lab.run()
		case "start-growing":
			return grows.start()
		case "grow":
			grows.append(argument)
		case "kill":
			demo.kill()
		case "restart":
			demo.start()
		}
		return struct{}{}
	})
}

// TestPictures makes the documentation's pictures of the debugger, as `make pictures` does, and
// pictures of all its states in the folder DEBUGGER_STATES.
func TestPictures(t *testing.T) {
	if os.Getenv("DEBUGGER_PICTURES")+os.Getenv("DEBUGGER_STATES") == "" || os.Getenv("HELIX_BROWSER") == "" {
		t.Skip("set HELIX_BROWSER=1, and DEBUGGER_PICTURES or DEBUGGER_STATES to a folder, as `make pictures` does")
	}
	runDebugger(t, "pictures.mjs")
}
