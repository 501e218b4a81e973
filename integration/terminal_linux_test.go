package integration_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/helixd/helixd/integration/testkit"
)

// terminalColumns is how wide a terminal of the tests is: not as wide as what
// is written elsewhere.
const terminalColumns = 200

// terminal is a command that runs on its own terminal.
type terminal struct {
	t    *testing.T
	keys *os.File // what is typed, and shown
	cmd  *exec.Cmd
	seen *testkit.Log
	done chan struct{} // closed when everything was seen
}

// onTerminal starts a command.
func onTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	testkit.Slow(t)
	keys, screen := openTerminal(t)
	c := &terminal{t: t, keys: keys, cmd: exec.Command(program(t), args...), seen: new(testkit.Log), done: make(chan struct{})}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = screen, screen, screen
	c.cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=")
	require.NoError(t, c.cmd.Start())
	screen.Close()
	go func() {
		defer close(c.done)
		part := make([]byte, 4096)
		for {
			n, err := keys.Read(part)
			_, _ = c.seen.Write(part[:n])
			if err != nil { // the command has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		c.cmd.Process.Kill()
		c.cmd.Wait()
		keys.Close()
		<-c.done
	})
	return c
}

func openTerminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		t.Skip("this system gives no terminals")
	}
	require.NoError(t, err)
	var number int
	raw, err := keys.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = errors.Join(
			unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0),
			unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: terminalColumns}),
		)
		if err == nil {
			number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}))
	require.NoError(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return keys, screen
}

// shows waits until a text is seen.
func (c *terminal) shows(text string) {
	c.t.Helper()
	require.Eventually(c.t, func() bool { return strings.Contains(c.seen.String(), text) }, 2*time.Minute, 5*time.Millisecond,
		"it shows no %q", text)
}

// ended waits for the end of the command and returns its exit code.
func (c *terminal) ended() int {
	c.t.Helper()
	err := c.cmd.Wait()
	<-c.done
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	require.NoError(c.t, err)
	return 0
}

// plainText is a text without its colors.
func plainText(s string) string { return regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAllString(s, "") }

// TestTerminal: who sits at one sees colours, and is asked before something is
// lost.
func TestTerminal(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	d, waited, _ := travelled(t)
	at := fmt.Sprint(waited)
	question := "Take walk back to sequence " + at + "? What came after it, up to "

	tail := onTerminal(t, "tail", "walk", "--server", d.url)
	require.Zero(t, tail.ended())
	require.Contains(t, tail.seen.String(), "\x1b[32mtext\x1b[0m")

	sides := onTerminal(t, "compare", "walk@"+at, "walk", "--server", d.url)
	require.Zero(t, sides.ended())
	require.Regexp(t, `(?m)^agent {7}guide {87} │ guide\r?$`, plainText(sides.seen.String()), "as wide as the terminal")

	no := onTerminal(t, "rollback", "walk", "--to", at, "--server", d.url)
	no.shows(question)
	_, err := no.keys.WriteString("n\n")
	require.NoError(t, err)
	require.Equal(t, 1, no.ended())
	require.Contains(t, no.seen.String(), "is discarded: 2 messages. [y/N]")
	require.Contains(t, no.seen.String(), "nothing was changed")
	require.Contains(t, helixd(t, "records", "walk", "--server", d.url), `"Oslo"`)

	yes := onTerminal(t, "rollback", "walk", "--to", at, "--server", d.url)
	yes.shows(question)
	_, err = yes.keys.WriteString("y\n")
	require.NoError(t, err)
	require.Zero(t, yes.ended())
	require.Contains(t, yes.seen.String(), "walk is back at "+at)
	require.NotContains(t, helixd(t, "records", "walk", "--server", d.url), `"Oslo"`)

	chunk := filepath.Join(t.TempDir(), "chunk")
	require.NoError(t, os.WriteFile(chunk, []byte("{\"type\":\"text_delta\",\"delta\":\"\u009b2J\",\"agentId\":\"odd\",\"agentType\":\"a\",\"timestamp\":1,\"step\":0}"), 0o600))
	helixd(t, "append", "odd", chunk, "--server", d.url)
	require.Contains(t, helixd(t, "export", "odd", "--server", d.url), "\u009b2J", "elsewhere it is as the log has it")
	export := onTerminal(t, "export", "odd", "--server", d.url)
	require.Zero(t, export.ended())
	require.Contains(t, export.seen.String(), `\u009b2J`)
	require.NotContains(t, export.seen.String(), "\u009b", "the terminal would obey it")

	chat := onTerminal(t, "chat", "guide", "--session", "talk", "--server", d.url)
	for _, turn := range [][2]string{
		{"> ", "How far is it?\n"}, {"Result of get_location {}, as JSON", `{"city":"Rome"}` + "\n"}, {"From there it is a short walk.", "\x04"},
	} {
		chat.shows(turn[0])
		_, err = chat.keys.WriteString(turn[1])
		require.NoError(t, err)
	}
	require.Zero(t, chat.ended())
	require.Contains(t, chat.seen.String(), "Continue with helixd chat --session talk")

	// Progress is shown on a terminal, and removed; elsewhere there is none of it.
	file := filepath.Join(t.TempDir(), "all.backup")
	backup := onTerminal(t, "backup", "--server", d.url, "--out", file)
	require.Zero(t, backup.ended())
	require.Regexp(t, `(?s)^\x1b\[Kbackup  .*\x1b\[Kcheck  \[.*\] +\d+ % .*\r\x1b\[K\S*all.backup: \d+ sessions, `, backup.seen.String())
	out, err := exec.CommandContext(t.Context(), program(t), "verify", "--backup", file).CombinedOutput()
	require.NoError(t, err)
	require.Regexp(t, `^\d+ sessions, \d+ records: 0 problems, 0 notes\n$`, string(out))
}
