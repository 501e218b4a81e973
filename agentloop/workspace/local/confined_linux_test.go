package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/eventlog/fact"
)

// inAgain tells a process that it is one that again has begun.
const inAgain = "HELIX_TEST_AGAIN"

// again runs a test in its own process, and reports whether this is that
// one. prepare is called on the thread that starts it, which then ends.
func again(t *testing.T, prepare func(*exec.Cmd)) bool {
	t.Helper()
	if os.Getenv(inAgain) != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inAgain+"=1")
	type result struct {
		out []byte
		err error
	}
	ended := make(chan result)
	go func() {
		runtime.LockOSThread()
		prepare(cmd)
		out, err := cmd.CombinedOutput()
		ended <- result{out, err}
	}()
	r := <-ended
	if r.err != nil && cmd.Process == nil { // no namespaces
		if os.Geteuid() != 0 {
			return true // nothing confines commands here either
		}
		t.Skip("needs namespaces:", r.err)
	}
	require.NoError(t, r.err, "%s", r.out)
	return false
}

// filesOnly is what there is where commands can't be confined.
func filesOnly(t *testing.T, dir string) {
	t.Helper()
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	require.ErrorContains(t, p.ShellProblem(), "commands can't be confined")
	require.NotContains(t, p.Capabilities(), fact.WorkspaceShell)
	w := workspacetest.Open(t, p, workspacetest.Session)
	require.Nil(t, w.Shell())
	require.NoError(t, w.FS().WriteFile(t.Context(), "d/a", []byte("1")))
	require.Equal(t, map[string]string{"d/a": "1"}, workspacetest.Files(t, w))
}

func TestNoShellWhereNothingConfinesIt(t *testing.T) {
	alone := func(cmd *exec.Cmd) { // root of a namespace that has no other users
		only := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: only(os.Geteuid()), GidMappings: only(os.Getegid()),
		}
	}
	if !again(t, alone) {
		return
	}
	dir := t.TempDir()
	filesOnly(t, dir)
	p, err := local.New(dir, &local.Options{Unconfined: true})
	require.NoError(t, err)
	require.NoError(t, p.ShellProblem())
	require.False(t, p.Isolated())
	require.Equal(t, "1", run(t, workspacetest.Open(t, p, workspacetest.Session), "cat d/a").Stdout)
}

func TestRootWithoutItsRights(t *testing.T) {
	if os.Getenv(inAgain) == "" && !local.Root() {
		t.Skip("for root only")
	}
	if !again(t, func(*exec.Cmd) {
		for right := range uintptr(unix.CAP_LAST_CAP + 1) {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0)
		}
	}) {
		return
	}
	filesOnly(t, t.TempDir())
	_, err := local.New(t.TempDir(), &local.Options{RunAs: "12345"})
	require.ErrorIs(t, err, os.ErrPermission)
}

// The names are relative, as dataDir's default is, and neither of homes nor of
// temporary files, if the source is not.
func TestWhatIsHiddenIsNotSeen(t *testing.T) {
	name, err := os.MkdirTemp(".", "hidden-*")
	if err != nil {
		t.Skip("needs a folder beside the source:", err)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(name)) })
	require.NoError(t, os.Chmod(name, 0o755))
	inner, key := filepath.Join(name, "inner"), filepath.Join(name, "key")
	require.NoError(t, os.Mkdir(inner, 0o755))
	for _, file := range []string{key, filepath.Join(inner, "data")} {
		require.NoError(t, os.WriteFile(file, []byte("of the daemon"), 0o644))
	}
	dir, err := filepath.Abs(name)
	require.NoError(t, err)
	for _, hide := range [][]string{{inner, key, name + "/none"}, {name, inner}, {inner, name}} {
		p := open(t, local.Options{Timeout: patient, Hide: hide})
		needsIsolation(t, p)
		o := run(t, workspacetest.Open(t, p, workspacetest.Session), "cd "+dir+" && echo there && cat key inner/* ../"+name+"/key; ls inner")
		if !strings.HasPrefix(o.Stdout, "there\n") {
			t.Skip("needs a source that is not below what is hidden anyway:", o.Stderr)
		}
		require.NotContains(t, o.Stdout, "of the daemon", hide)
		require.NotContains(t, o.Stdout, "data", hide)
	}
}

// A file that is hidden later is not seen by the next command of an open workspace.
func TestWhatIsHiddenLaterIsNotSeen(t *testing.T) {
	name, err := os.MkdirTemp(".", "hidden-*")
	if err != nil {
		t.Skip("needs a folder beside the source:", err)
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(name)) })
	require.NoError(t, os.Chmod(name, 0o755))
	for _, file := range []string{"first", "later"} {
		require.NoError(t, os.WriteFile(filepath.Join(name, file), []byte("secret-"+file), 0o644))
	}
	dir, err := filepath.Abs(name)
	require.NoError(t, err)
	p := open(t, local.Options{Timeout: patient, Hide: []string{filepath.Join(name, "first")}})
	needsIsolation(t, p)
	w := workspacetest.Open(t, p, workspacetest.Session)
	cat := "cat " + dir + "/first " + dir + "/later"
	if o := run(t, w, cat); o.Stdout != "secret-later" {
		t.Skip("needs a source that is not below what is hidden anyway:", o.Stderr)
	}
	require.NoError(t, p.AddHidden([]string{filepath.Join(name, "later")}))
	require.NotContains(t, run(t, w, cat).Stdout, "secret")
}

func TestHomesAndSocketsAreHidden(t *testing.T) {
	p := open(t, local.Options{Timeout: patient})
	needsIsolation(t, p)
	w := workspacetest.Open(t, p, workspacetest.Session)
	require.Equal(t, "/home/agent\n", run(t, w, "find /home /root /mnt /srv /media -mindepth 1 -maxdepth 1").Stdout)
	require.Empty(t, run(t, w, "find /run -type s").Stdout)
	require.Equal(t, "ptmx\n", run(t, w, "ls /dev/pts").Stdout)
	servers, err := os.ReadFile("/etc/resolv.conf")
	if err == nil {
		require.Equal(t, string(servers), run(t, w, "cat /etc/resolv.conf").Stdout, "names are found as by the machine")
	}
}

// A command has exchanged another's folder for temporary files for a link.
func TestTemporaryFilesDoNotLeadOut(t *testing.T) {
	dir, p, w := opened(t)
	needsIsolation(t, p)
	outside := passable(t)
	require.NoError(t, os.Chmod(outside, 0o777))
	require.NoError(t, w.FS().WriteFile(t.Context(), "d/a", nil))
	require.NoError(t, os.Symlink(outside, filepath.Join(folder(t, dir), "link")))
	require.NoError(t, os.Symlink("..", filepath.Join(folder(t, dir), "d", "up")))
	for _, temp := range []string{"link", "d/up", "d/up/link"} {
		_, err := local.RunWithTemp(t.Context(), p, workspacetest.Session, temp, "touch /tmp/x")
		require.Error(t, err, temp)
	}
	o, err := local.RunWithTemp(t.Context(), p, workspacetest.Session, "d", "touch /tmp/x")
	require.NoError(t, err)
	require.Zero(t, o.ExitCode)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A folder that a process made just before it was killed becomes the commands' when a file is
// written there.
func TestAFolderOfAKilledProcessBecomesTheUsers(t *testing.T) {
	if !local.Root() {
		t.Skip("needs root: otherwise commands run as the same user")
	}
	dir := passable(t)
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	w := workspacetest.Open(t, p, workspacetest.Session)
	files, err := filepath.Glob(filepath.Join(dir, "trees", "*", "files", "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.MkdirAll(filepath.Join(files[0], "a", "b"), 0o755))
	require.NoError(t, w.FS().WriteFile(t.Context(), "a/b/c/file", nil))
	for _, name := range []string{"a", "a/b", "a/b/c", "a/b/c/file"} {
		info, err := os.Stat(filepath.Join(files[0], name))
		require.NoError(t, err)
		require.NotZero(t, info.Sys().(*syscall.Stat_t).Uid, name)
	}
}
