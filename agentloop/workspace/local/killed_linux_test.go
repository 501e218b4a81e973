package local_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/integration/testkit"
)

// daemonRuns is the command of a process that TestNothingOutlivesTheDaemon
// kills, and daemonDir where.
const daemonRuns, daemonDir = "HELIX_TEST_RUNS", "HELIX_TEST_DIR"

func TestMain(m *testing.M) {
	line := os.Getenv(daemonRuns)
	if line == "" {
		testkit.AtOnce(6) // commands that wait
		goleak.VerifyTestMain(testkit.InMemory(m))
		return
	}
	p, err := local.New(os.Getenv(daemonDir), nil)
	if err != nil {
		panic(err)
	}
	w, _, err := p.Open(context.Background(), workspacetest.Session)
	if err != nil {
		panic(err)
	}
	o, err := w.Shell().Run(context.Background(), workspace.Command{Line: line})
	panic(fmt.Sprint("the command has ended: ", o, err))
}

func TestNothingOutlivesTheDaemon(t *testing.T) {
	dir := passable(t)
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	needsShell(t, p)
	marker := fmt.Sprintf("sleep 7%d", time.Now().UnixNano()%1e9)
	daemon := exec.Command(os.Args[0])
	daemon.Env = append(os.Environ(), daemonRuns+"=setsid "+marker+" & "+marker, daemonDir+"="+dir)
	require.NoError(t, daemon.Start())
	require.Eventually(t, func() bool { return len(running(t, marker)) >= 2 }, patient, 10*time.Millisecond)
	require.NoError(t, daemon.Process.Kill())
	require.Error(t, daemon.Wait())
	require.Eventually(t, func() bool { return len(running(t, marker)) == 0 }, patient, 10*time.Millisecond)
}
