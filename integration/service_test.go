package integration_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// TestServiceManagerIsTold: a daemon tells the service manager that it serves
// and when it reads its configuration again, calls its watchdog, and says that it stops; a SIGTERM is followed and is no
// failure.
func TestServiceManagerIsTold(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	require.NoError(t, err)
	defer conn.Close()
	d := newDaemon(t, "serve", "--allow-unauthenticated", "--data-dir", filepath.Join(t.TempDir(), "data"))
	d.env = []string{"NOTIFY_SOCKET=" + socket, "WATCHDOG_USEC=4000000"}
	d.start()
	said := func(want string) {
		t.Helper()
		buf := make([]byte, 4096)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
		for {
			n, err := conn.Read(buf)
			require.NoError(t, err, "the daemon does not say %s", want)
			if strings.Contains(string(buf[:n]), want) {
				return
			}
		}
	}
	said("EXTEND_TIMEOUT_USEC=")
	said("READY=1\nSTATUS=Serving " + d.url)
	said("WATCHDOG=1")
	require.Equal(t, "ready\n", helixd(t, "healthy", "--server", d.url))
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGHUP))
	said("RELOADING=1")
	said("READY=1")
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	said("STOPPING=1")
	require.NoError(t, d.cmd.Wait(), "a stop that was asked for is a success")

	err = exec.Command(program(t), "healthy", "--server", d.url).Run()
	require.Equal(t, 1, err.(*exec.ExitError).ExitCode())
}

// TestSecondSignalEndsAtOnce: a second signal ends the daemon without waiting for runs to
// reach a point where they can stop.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
auth: {allowUnauthenticated: true}
drainTimeout: 1h
agents:
  slow: {model: {provider: scripted, script: [{text: It never ends}], scriptDelay: 1h}}
`), 0o600))
	d := newDaemon(t, "serve", "--config", file, "--data-dir", filepath.Join(dir, "data"))
	d.start()
	status, answer := d.post("/start", map[string]any{"sessionId": "s", "agentType": "slow", "message": "Go."})
	require.Equal(t, 200, status, "%v", answer)
	require.NoError(t, d.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool {
		resp, err := client.Get(d.url + "/readyz") // a server that begins to drain closes idle connections
		if err != nil {
			return false
		}
		_, answer := d.answer(resp)
		return answer["draining"] == true
	}, time.Minute, 5*time.Millisecond)
	ended := make(chan error, 1)
	go func() { ended <- d.cmd.Wait() }()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	var err error
	for err == nil { // it may come while the first is being heard
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err = <-ended:
			require.Error(t, err)
		case <-again.C:
		case <-t.Context().Done():
			require.FailNow(t, "it does not end")
		}
	}
	require.Equal(t, syscall.SIGTERM, err.(*exec.ExitError).Sys().(syscall.WaitStatus).Signal())
}
