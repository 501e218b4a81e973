package local_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/integration/testkit"
)

// TestNetworkOfCommands: a command reaches nothing that listens on this machine,
// unless it is given the machine's network.
func TestNetworkOfCommands(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs a shell that connects:", err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tcp.Close()) })
	dial := fmt.Sprintf(`%s -c 'exec 3<>/dev/tcp/127.0.0.1/%d && echo connected'`, bash, tcp.Addr().(*net.TCPAddr).Port)
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		for _, gap := range p.Gaps() {
			if strings.Contains(gap, "network") {
				t.Skip(gap)
			}
		}
		require.Empty(t, run(t, w, dial).Stdout)
		o, err := w.Shell().Run(t.Context(), workspace.Command{Line: dial, HostNetwork: true})
		require.NoError(t, err)
		require.Equal(t, "connected\n", o.Stdout, o.Stderr)
		if !p.Isolated() {
			return
		}
		require.Equal(t, "lo\n", run(t, w, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '").Stdout, "no interface but its own")
		if _, err := os.Stat("/proc/net/fib_trie"); err != nil {
			return // not every kernel tells
		}
		require.Contains(t, run(t, w, "cat /proc/net/fib_trie").Stdout, "127.0.0.1", "what it begins itself can be reached")
	})
}

func TestCallsAreFiltered(t *testing.T) {
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		for _, gap := range p.Gaps() {
			if strings.Contains(gap, "system call") {
				t.Skip(gap)
			}
		}
		require.Equal(t, "Seccomp:\t2\n", run(t, w, "grep ^Seccomp: /proc/self/status").Stdout)
		require.Equal(t, "fine\n", run(t, w, "(echo fine | cat) && sh -c 'exit 0'").Stdout)
	})
}

func TestDevicesOfCommands(t *testing.T) {
	p := open(t, local.Options{Timeout: patient})
	needsIsolation(t, p)
	w := workspacetest.Open(t, p, workspacetest.Session)
	have := strings.Fields(run(t, w, "ls /dev").Stdout)
	require.Subset(t, []string{"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}, have)
	require.Subset(t, have, []string{"fd", "null", "urandom", "zero", "stdout", "shm"})
	o := run(t, w, "head -c 8 /dev/urandom | wc -c; echo gone >/dev/null; head -c 3 /dev/zero | wc -c; echo x >/dev/shm/x && cat /dev/shm/x")
	require.Equal(t, "8\n3\nx\n", o.Stdout, o.Stderr)
	require.NotZero(t, run(t, w, "touch /dev/x").ExitCode)
}

// TestMemoryOfCommands: neither one process nor several together have more than
// they may.
func TestMemoryOfCommands(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	each(t, local.Options{Timeout: patient, MaxMemory: 256 << 20}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		hold := func(bytes int) string { // tail holds what it has read until somebody reads
			return fmt.Sprintf("head -c %d /dev/zero | tail -c %d | sleep 60", bytes, bytes)
		}
		require.Zero(t, run(t, w, "head -c 50000000 /dev/zero | tail -c 50000000 | wc -c").ExitCode)
		o := run(t, w, "head -c 400000000 /dev/zero | tail -c 400000000 >/dev/null; echo ended")
		require.True(t, o.Stopped == "memory" || strings.Contains(o.Stderr, "memory"), "%+v", o)
		o = run(t, w, strings.Repeat(hold(100_000_000)+" & ", 5)+"wait")
		require.Equal(t, "memory", o.Stopped, "%+v", o)
	})
}
