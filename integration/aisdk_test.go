package integration_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// TestAISDK runs the AI SDK's own clients, of every supported version, against
// the daemon: every cut of every stream, every Chat class. It needs node and
// what `make aisdk` installs.
func TestAISDK(t *testing.T) {
	t.Parallel()
	testkit.With(t, "HELIX_AISDK", "aisdk")
	runNode(t, "aisdk")
}

// runNode runs a folder's main.mjs, which has a daemon started and killed: its commands are
// "start <config>", "kill" and "restart".
func runNode(t *testing.T, folder string) {
	t.Helper()
	dir := t.TempDir()
	var d *daemon
	node := exec.CommandContext(t.Context(), "node", "main.mjs", filepath.Join(dir, "helix.yaml"))
	node.Dir = folder
	obey(t, node, func(command, config string) any {
		switch command {
		case "start":
			d = newDaemon(t, "serve", "--config", config, "--data-dir", filepath.Join(dir, "data"), "--allow-unauthenticated")
			d.start()
		case "kill":
			d.kill()
		case "restart":
			d.start()
		}
		return map[string]string{"url": d.url}
	})
}

// obey runs a program until it ends, as it must, without a failure. It prints what the program
// says, and does what it asks for on lines that begin with "@"; the program gets each answer as a line.
func obey(t *testing.T, program *exec.Cmd, do func(command, argument string) any) {
	t.Helper()
	program.Stderr = os.Stderr
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	answers, err := program.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		program.Process.Kill()
		program.Wait()
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line, isCommand := strings.CutPrefix(lines.Text(), "@")
		if !isCommand {
			fmt.Println(line)
			continue
		}
		command, argument, _ := strings.Cut(line, " ")
		require.NoError(t, json.NewEncoder(answers).Encode(do(command, argument)))
	}
	require.NoError(t, lines.Err())
	require.NoError(t, program.Wait(), "see above")
}
