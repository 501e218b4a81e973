package integration_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAISDK runs the AI SDK's own clients, of every supported version, against
// the daemon: every cut of every stream, every Chat class. It needs node and
// what `make aisdk` installs.
func TestAISDK(t *testing.T) {
	if os.Getenv("HELIX_AISDK") == "" {
		t.Skip("set HELIX_AISDK=1, as `make aisdk` does")
	}
	runNode(t, "aisdk")
}

// runNode runs a folder's main.mjs, which has a daemon started and killed.
func runNode(t *testing.T, folder string) {
	t.Helper()
	dir := t.TempDir()
	node := exec.CommandContext(t.Context(), "node", "main.mjs", filepath.Join(dir, "helix.yaml"))
	node.Dir = folder
	node.Stderr = os.Stderr
	commands, err := node.StdoutPipe()
	require.NoError(t, err)
	answers, err := node.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, node.Start())
	t.Cleanup(func() {
		node.Process.Kill()
		node.Wait()
	})

	serveNode(t, filepath.Join(dir, "data"), commands, answers)
	require.NoError(t, node.Wait(), "see above")
}

// serveNode prints what the program says, and does what it asks for on lines
// that begin with "@": "start <config>", "kill" and "restart".
func serveNode(t *testing.T, data string, commands io.Reader, answers io.Writer) {
	var d *daemon
	lines := bufio.NewScanner(commands)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line, isCommand := strings.CutPrefix(lines.Text(), "@")
		if !isCommand {
			os.Stdout.WriteString(line + "\n")
			continue
		}
		command, config, _ := strings.Cut(line, " ")
		switch command {
		case "start":
			d = newDaemon(t, "serve", "--config", config, "--data-dir", data, "--allow-unauthenticated")
			d.start()
		case "kill":
			d.kill()
		case "restart":
			d.start()
		}
		require.NoError(t, json.NewEncoder(answers).Encode(map[string]string{"url": d.url}))
	}
	require.NoError(t, lines.Err())
}
