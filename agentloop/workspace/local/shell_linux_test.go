package local_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/integration/testkit"
)

// patient is for commands that must end by themselves, also on a busy machine.
const patient = 2 * time.Minute

func run(t *testing.T, w workspace.Workspace, line string) workspace.Outcome {
	t.Helper()
	o, err := w.Shell().Run(t.Context(), workspace.Command{Line: line})
	require.NoError(t, err)
	return o
}

// each runs a test with both ways to run commands, as far as there are two
// here.
func each(t *testing.T, o local.Options, test func(t *testing.T, p *local.Provider, w workspace.Workspace)) {
	for _, plain := range []bool{false, true} {
		t.Run(map[bool]string{false: "isolated", true: "plain"}[plain], func(t *testing.T) {
			p := open(t, o)
			if plain {
				local.MakePlain(t, p)
			} else {
				needsIsolation(t, p)
			}
			test(t, p, workspacetest.Open(t, p, workspacetest.Session))
		})
	}
}

func TestCommands(t *testing.T) {
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		require.NoError(t, w.FS().WriteFile(t.Context(), "d/in", []byte("from the tool")))
		require.Equal(t, workspace.Outcome{Stdout: "from the tool", Stderr: "oops\n", ExitCode: 3},
			run(t, w, "cat d/in; echo oops >&2; exit 3"))
		o, err := w.Shell().Run(t.Context(), workspace.Command{Line: "pwd; cat; echo made > out; mkdir x; ln -s ../d/in x/link", Dir: "d", Stdin: "typed\n"})
		require.NoError(t, err)
		require.Zero(t, o.ExitCode, o.Stderr)
		require.Regexp(t, "^/.*/d\ntyped\n$", o.Stdout)
		data, err := w.FS().ReadFile(t.Context(), "d/out")
		require.NoError(t, err)
		require.Equal(t, "made\n", string(data))
		require.NoError(t, w.FS().WriteFile(t.Context(), "d/x/more", []byte("x")), "files of commands and of tools are one user's")
		require.Zero(t, run(t, w, "rm -r d/x && echo y > d/in").ExitCode)

		require.Equal(t, 128+9, run(t, w, "kill -9 $$").ExitCode)
		require.Equal(t, 127, run(t, w, "no-such-command").ExitCode)
		require.Equal(t, "�", run(t, w, `printf '\377'`).Stdout, "an output is text")
		for dir, want := range map[string]error{"..": workspace.ErrOutside, "/": workspace.ErrOutside, "none": os.ErrNotExist, "d/in": workspace.ErrNotFolder} {
			_, err = w.Shell().Run(t.Context(), workspace.Command{Line: "pwd", Dir: dir})
			require.ErrorIs(t, err, want, dir)
		}
		for _, line := range []string{"", " \n", "a\x00b", strings.Repeat("x", 70<<10)} {
			_, err = w.Shell().Run(t.Context(), workspace.Command{Line: line})
			require.Error(t, err)
		}
	})
}

func TestACommandHasNothingOfTheDaemons(t *testing.T) {
	t.Setenv("HELIX_SECRET", "of-the-daemon")
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		env := strings.Fields(run(t, w, "env | cut -d= -f1 | sort").Stdout)
		require.Subset(t, []string{"HOME", "LANG", "OLDPWD", "PATH", "PWD", "SHLVL", "TMPDIR", "_"}, env)
		require.Zero(t, run(t, w, `cd && touch here && touch "$TMPDIR/x" && [ "$(ls -A "$TMPDIR")" = x ]`).ExitCode)
		_, err := w.FS().Stat(t.Context(), "here")
		require.NoError(t, err, "HOME is the workspace")
		require.Equal(t, "", run(t, w, `ls -A "$TMPDIR"`).Stdout, "temporary files end with their command")

		o := run(t, w, "ls /proc/self/fd | sort -n | tr '\\n' ' '")
		require.Equal(t, "0 1 2 3 ", o.Stdout, "its streams, and the folder that ls reads")
		o = run(t, w, fmt.Sprintf("cat /proc/%d/environ /proc/1/environ; cat /proc/$PPID/environ", os.Getpid()))
		require.NotContains(t, o.Stdout, "of-the-daemon")
		if local.Root() {
			require.Equal(t, "65534 65534\n", run(t, w, "echo $(id -u) $(id -G)").Stdout)
			require.NotZero(t, run(t, w, "cat /etc/shadow").ExitCode)
		}
		require.Contains(t, run(t, w, "cat /proc/self/status").Stdout, "NoNewPrivs:\t1")
		require.Regexp(t, `CapEff:\t0+\n`, run(t, w, "cat /proc/self/status").Stdout)
	})
}

func TestAnIsolatedCommandSeesOnlyItsWorkspace(t *testing.T) {
	testkit.Sequential(t)
	hidden := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(hidden, "data"), []byte("of the daemon"), 0o644))
	require.NoError(t, os.Chmod(hidden, 0o777))
	dir := passable(t)
	p, err := local.New(dir, &local.Options{Timeout: patient, Hide: []string{hidden}})
	require.NoError(t, err)
	needsIsolation(t, p)
	w, other := workspacetest.Open(t, p, workspacetest.Session), workspacetest.Open(t, p, workspace.Session{Root: "o", ID: "o"})
	require.NoError(t, other.FS().WriteFile(t.Context(), "theirs", []byte("x")))
	require.NotContains(t, run(t, w, "cat "+hidden+"/data; find "+dir+" "+hidden).Stdout, "data")
	t.Run("on the whole machine", func(t *testing.T) {
		testkit.Full(t)
		o := run(t, w, "find / \\( -path /proc -o -path /sys \\) -prune -o -name theirs -print 2>/dev/null; echo looked")
		require.Equal(t, "looked\n", o.Stdout)
	})
	require.Equal(t, "/home/agent\n", run(t, w, "pwd").Stdout)
	require.NotZero(t, run(t, w, "touch /var/x || touch /etc/x || touch "+hidden+"/x").ExitCode, "the machine is read-only")
	temp := fmt.Sprint("of-a-command-", time.Now().UnixNano())
	require.Zero(t, run(t, w, "touch /tmp/x /var/tmp/"+temp+" && [ -e /tmp/"+temp+" ]").ExitCode)
	require.NoFileExists(t, "/tmp/"+temp)
	require.NoFileExists(t, "/var/tmp/"+temp)
	require.Equal(t, "1\n", run(t, w, "ls /proc | grep -c '^1$'").Stdout)
	require.NotContains(t, run(t, w, "cat /proc/[0-9]*/cmdline").Stdout, os.Args[0], "it sees its own processes only")
	require.Equal(t, "0\n", run(t, w, "cat /proc/sys/user/max_user_namespaces").Stdout, "it can't be root of further namespaces")
	require.NotZero(t, run(t, w, "unshare --user true || echo 1 > /proc/sys/user/max_user_namespaces").ExitCode)
}

// daemons are ways to outlive a command.
var daemons = map[string]string{
	"in the background":  "%s &",
	"of its own session": "setsid %s &",
	"twice forked":       "(setsid sh -c '(%s &) &' &) ; sleep 0.1",
	"without the pipes":  "setsid %s >/dev/null 2>&1 </dev/null &",
	"deaf":               "(trap '' HUP TERM INT; nohup %s >/dev/null 2>&1 &)",
}

func TestNothingOutlivesItsCommand(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		for name, line := range daemons {
			t.Run(name, func(t *testing.T) {
				marker := fmt.Sprintf("sleep 9%d", time.Now().UnixNano()%1e9)
				began := time.Now()
				require.Zero(t, run(t, w, fmt.Sprintf(line, marker)+"\n echo ended").ExitCode)
				require.Less(t, time.Since(began), patient/2)
				require.Empty(t, running(t, marker), "all that a command began is dead when it is answered")
			})
		}
	})
}

// running returns the processes with that command line.
func running(t *testing.T, line string) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(strings.ReplaceAll(string(text), "\x00", " "), line) {
			pids = append(pids, name)
		}
	}
	return pids
}

func TestTimeLimit(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		marker := fmt.Sprintf("sleep 8%d", time.Now().UnixNano()%1e9)
		want := workspace.Outcome{ExitCode: -1, Stdout: "begun\n", Stopped: "timeout"}
		for timeout := time.Second; ; timeout *= 2 { // a busy machine needs longer to begin
			o, err := w.Shell().Run(t.Context(), workspace.Command{Line: "echo begun; setsid " + marker + " & " + marker, Timeout: timeout})
			require.NoError(t, err)
			require.Empty(t, running(t, marker))
			if o.Stdout != "" || timeout > patient/2 {
				require.Equal(t, want, o)
				break
			}
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.Shell().Run(ctx, workspace.Command{Line: marker})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Empty(t, running(t, marker))
	})
}

func TestOutputLimit(t *testing.T) {
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		o := run(t, w, "head -c 300000 /dev/zero | tr '\\0' a; echo err >&2")
		require.Zero(t, o.ExitCode)
		require.True(t, o.Truncated)
		require.Equal(t, strings.Repeat("a", workspace.MaxOutput), o.Stdout)
		require.Equal(t, "err\n", o.Stderr)
		for _, line := range []string{"yes", "yes >&2", "cat /dev/zero"} {
			o = run(t, w, line)
			require.Equal(t, "output", o.Stopped, line)
			require.Equal(t, -1, o.ExitCode)
			require.True(t, o.Truncated)
			require.LessOrEqual(t, len(o.Stdout)+len(o.Stderr), workspace.MaxOutput)
		}
	})
}

func TestProcessLimit(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	each(t, local.Options{Timeout: patient, MaxProcesses: 20}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		require.Zero(t, run(t, w, "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.3 & done; wait").ExitCode)
		limits := strings.Split(strings.TrimSpace(run(t, w, `grep -h "^Max processes" /proc/$PPID/limits /proc/self/limits`).Stdout), "\n")
		require.Len(t, limits, 2)
		require.NotEqual(t, limits[1], limits[0], "who ends a command can do so, whatever that has begun")
		if !p.Isolated() && !local.Root() {
			t.Skip("a command could end its supervisor: then nothing would end a bomb")
		}
		marker := fmt.Sprintf("sleep 7%d", time.Now().UnixNano()%1e9)
		o := run(t, w, "while :; do "+marker+" & done")
		require.Equal(t, "processes", o.Stopped)
		require.Empty(t, running(t, marker))
		// A bomb may also end by its own forks that fail.
		_, err := w.Shell().Run(t.Context(), workspace.Command{Line: ":(){ :|:& };:; " + marker, Timeout: time.Second})
		require.NoError(t, err)
		require.Empty(t, running(t, marker), "all of a fork bomb is ended: each has the whole line")
		require.Equal(t, "fine\n", run(t, w, "echo fine").Stdout)
	})
}

func TestQuotaOfCommands(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	each(t, local.Options{Timeout: patient, MaxBytes: 4 << 20}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		require.NotZero(t, run(t, w, "head -c 8000000 /dev/zero > big").ExitCode, "no file is larger than the workspace may be")
		_, err := w.Shell().Run(t.Context(), workspace.Command{Line: "true"})
		require.NoError(t, err)
		o := run(t, w, "i=0; while :; do i=$((i+1)); head -c 1000000 /dev/zero > f$i; sleep 0.1; done")
		require.Equal(t, "quota", o.Stopped)
		require.ErrorIs(t, w.FS().WriteFile(t.Context(), "more", []byte("x")), workspace.ErrQuota)
		require.Zero(t, run(t, w, "sleep 2; rm -f *").ExitCode, "a full workspace can be cleared")
		require.NoError(t, w.FS().WriteFile(t.Context(), "more", []byte("x")))
	})
}

// A command that locks its home keeps nobody out of the workspace.
func TestALockedHomeIsUnlocked(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	each(t, local.Options{Timeout: patient}, func(t *testing.T, p *local.Provider, w workspace.Workspace) {
		require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
		lock := func() { run(t, w, "chmod 0 ~") }
		lock()
		data, err := w.FS().ReadFile(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "1", string(data))
		lock()
		require.NoError(t, w.FS().WriteFile(t.Context(), "b", []byte("2")))
		lock()
		s, err := w.Snapshots().Take(t.Context())
		require.NoError(t, err)
		lock()
		require.Equal(t, "1", run(t, w, "cat a").Stdout)
		require.Equal(t, workspace.Outcome{Stdout: "1"}, run(t, w, "chmod 0 ~; sleep 2; chmod 700 ~; cat ~/a"), "nor from counting")
		lock()
		require.NoError(t, w.Snapshots().Restore(t.Context(), s))
		require.Equal(t, map[string]string{"a": "1", "b": "2"}, workspacetest.Files(t, w))
	})
}

func TestRemovalEndsCommands(t *testing.T) {
	p := open(t, local.Options{Timeout: patient})
	needsShell(t, p)
	w := workspacetest.Open(t, p, workspacetest.Session)
	ended := make(chan error, 1)
	go func() {
		_, err := w.Shell().Run(t.Context(), workspace.Command{Line: "touch begun; sleep 7778"})
		ended <- err
	}()
	require.Eventually(t, func() bool {
		_, err := w.FS().Stat(t.Context(), "begun")
		return err == nil
	}, patient, 10*time.Millisecond)
	_, err := p.Remove(t.Context(), workspacetest.Session.Root)
	require.NoError(t, err)
	require.ErrorIs(t, <-ended, workspace.ErrGone)
}

func TestRunAs(t *testing.T) {
	for _, name := range []string{"0", "root", "no-such-user"} {
		_, err := local.New(t.TempDir(), &local.Options{RunAs: name})
		require.Error(t, err, name)
	}
	if !local.Root() {
		_, err := local.New(t.TempDir(), &local.Options{RunAs: fmt.Sprint(os.Geteuid() + 1)})
		require.Error(t, err)
		return
	}
	p := open(t, local.Options{RunAs: "12345"})
	needsShell(t, p)
	require.Equal(t, "12345\n", run(t, workspacetest.Open(t, p, workspacetest.Session), "id -u").Stdout)
}
