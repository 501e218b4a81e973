package local_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
)

// shape is everything there is, as the file system has it.
func shape(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		if d.Name() == ".helix" {
			return fs.SkipDir
		}
		info, err := d.Info()
		require.NoError(t, err)
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			require.NoError(t, err)
			text += " " + string(data) + " " + info.ModTime().UTC().String()
		case info.Mode().Type() == fs.ModeSymlink:
			target, err := os.Readlink(name)
			require.NoError(t, err)
			text += " -> " + target
		}
		relative, err := filepath.Rel(folder, name)
		require.NoError(t, err)
		all[relative] = text
		return nil
	}))
	delete(all, ".")
	return all
}

func TestSnapshotsKeepModesLinksAndEmptyFolders(t *testing.T) {
	dir, p, w := opened(t)
	needsShell(t, p)
	run(t, w, `umask 022; mkdir -p bin empty locked/in; echo '#!/bin/sh' > bin/tool; chmod 755 bin/tool; echo s > secret; chmod 600 secret
		ln -s bin/tool link; ln -s /etc/passwd out; ln -s nowhere dangling; echo x > locked/in/f; chmod 500 locked/in; touch -d 2020-01-02 secret`)
	own := folder(t, dir)
	require.NoError(t, syscall.Mkfifo(filepath.Join(own, "pipe"), 0o666))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	was := shape(t, own)
	delete(was, "pipe")
	require.Len(t, was, 10)

	run(t, w, `chmod 700 locked/in; rm -rf bin empty locked secret link out; mkdir -p link out/x secret; echo other > bin; ln -s / locked; chmod 000 out/x`)
	require.NoError(t, w.Snapshots().Restore(t.Context(), s))
	require.Equal(t, was, shape(t, own))
	require.Equal(t, "s\n", run(t, w, "cat secret; ./bin/tool; : > locked/in/g").Stdout)
	again, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	if os.Geteuid() == 0 { // else the mode of a folder keeps its owner out, too
		require.Equal(t, string(s), string(again))
	}
	_, err = p.Remove(t.Context(), workspacetest.Session.Root)
	require.NoError(t, err, "also what its owner must not change")
}

// A snapshot does not take a file for unchanged by what can be forged.
func TestSnapshotsSeeForgedTimes(t *testing.T) {
	local.SettleAtOnce(t)
	dir, p, w := opened(t)
	needsShell(t, p)
	run(t, w, "echo one > f; touch -d 2020-01-02 f")
	one, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	_, err = w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	changed := func() syscall.Timespec {
		info, err := os.Lstat(filepath.Join(folder(t, dir), "f"))
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Ctim
	}
	for was := changed(); was == changed(); { // the file system's clock may tick slowly
		run(t, w, "echo two > f; touch -d 2020-01-02 f")
	}
	two, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, string(one), string(two))
	require.NoError(t, w.Snapshots().Restore(t.Context(), one))
	require.Equal(t, map[string]string{"f": "one\n"}, workspacetest.Files(t, w))
}

func TestFilesAreAnotherProcesss(t *testing.T) {
	dir := t.TempDir()
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	w, ref, err := p.Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("2")))
	// The first process is killed: it closes nothing.
	after, err := local.New(dir, nil)
	require.NoError(t, err)
	again, err := after.Resolve(t.Context(), workspacetest.Session, ref)
	require.NoError(t, err)
	defer again.Close()
	require.Equal(t, map[string]string{"a": "2"}, workspacetest.Files(t, again))
	require.NoError(t, again.Snapshots().Restore(t.Context(), s))
	require.Equal(t, map[string]string{"a": "1"}, workspacetest.Files(t, again))
	require.NoError(t, w.Close())

	elsewhere := open(t, local.Options{})
	_, err = elsewhere.Resolve(t.Context(), workspacetest.Session, ref)
	require.ErrorIs(t, err, workspace.ErrElsewhere)
	_, err = elsewhere.Adopt(t.Context(), workspacetest.Session, s)
	require.ErrorIs(t, err, workspace.ErrElsewhere)
}

// The first snapshot of a process, which knows no file yet, writes nothing where
// all is kept already.
func TestWhatIsKeptIsNotCopiedAgain(t *testing.T) {
	dir, _, w := opened(t)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	before, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	contents := filepath.Join(filepath.Dir(filepath.Dir(folder(t, dir))), "contents")
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(contents, long, long))

	after, err := local.New(dir, nil)
	require.NoError(t, err)
	again, err := workspacetest.Open(t, after, workspacetest.Session).Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, string(before), string(again))
	info, err := os.Stat(contents)
	require.NoError(t, err)
	require.Equal(t, long, info.ModTime().Truncate(time.Second))
}

// File systems bound how many names a file has: Adopt is called for every fork.
func TestAFileHasOnlySoManyNames(t *testing.T) {
	p := open(t, local.Options{})
	w := workspacetest.Open(t, p, workspacetest.Session)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	require.NoError(t, w.FS().WriteFile(t.Context(), "d/b", []byte("2")))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	local.LinkBy(t, func(from, to string) error {
		return &os.LinkError{Op: "link", Old: from, New: to, Err: syscall.EMLINK}
	})
	fork := workspace.Session{Root: "fork", ID: "fork"}
	own, err := p.Adopt(t.Context(), fork, s)
	require.NoError(t, err)
	_, err = p.Remove(t.Context(), workspacetest.Session.Root)
	require.NoError(t, err)
	forked := workspacetest.Open(t, p, fork)
	require.NoError(t, forked.Snapshots().Restore(t.Context(), own))
	require.Equal(t, map[string]string{"a": "1", "d/b": "2"}, workspacetest.Files(t, forked))
}

// While a fork links what a snapshot has, other trees are used.
func TestAForkHoldsNobodyElseUp(t *testing.T) {
	p := open(t, local.Options{})
	w := workspacetest.Open(t, p, workspacetest.Session)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	linking, goOn := make(chan struct{}), make(chan struct{})
	local.LinkBy(t, func(from, to string) error {
		close(linking)
		<-goOn
		return os.Link(from, to)
	})
	adopted := make(chan error, 1)
	go func() {
		_, err := p.Adopt(t.Context(), workspace.Session{Root: "fork", ID: "fork"}, s)
		adopted <- err
	}()
	<-linking
	other := workspacetest.Open(t, p, workspace.Session{Root: "other", ID: "other"})
	require.NoError(t, other.FS().WriteFile(t.Context(), "a", []byte("1")))
	close(goOn)
	require.NoError(t, <-adopted)
}

func TestRemovalLeavesNoFile(t *testing.T) {
	dir, p, w := opened(t)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a/b", []byte("1")))
	_, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	if p.ShellProblem() == nil {
		run(t, w, "mkdir -p locked/in; touch locked/in/f; chmod 000 locked/in locked")
	}
	_, err = p.Remove(t.Context(), workspacetest.Session.Root)
	require.NoError(t, err)
	var left []string
	require.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if name != dir {
			left = append(left, d.Name())
		}
		return err
	}))
	require.Equal(t, []string{"host", "trees"}, left)
}

func TestSnapshotsOfNobodyElse(t *testing.T) {
	_, p, w := opened(t)
	for _, text := range []string{
		`{}`, `null`, `{"host":"x","tree":"../../..","snapshot":"x"}`,
		`{"host":"x","tree":"00000000000000000000000000000000","snapshot":"../../root"}`,
	} {
		require.Error(t, w.Snapshots().Restore(t.Context(), []byte(text)), text)
		_, err := p.Adopt(t.Context(), workspace.Session{Root: "f", ID: "f"}, []byte(text))
		require.Error(t, err, text)
	}
}

func TestHardLinksToOthersFilesAreNotRead(t *testing.T) {
	if !local.Root() {
		t.Skip("for root only: else all files are one user's")
	}
	dir, _, w := opened(t)
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s"), 0o600))
	require.NoError(t, os.Link(secret, filepath.Join(folder(t, dir), "mine")))
	_, err := w.FS().ReadFile(t.Context(), "mine")
	require.ErrorIs(t, err, workspace.ErrOutside)
	taken, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Snapshots().Restore(t.Context(), taken))
	_, err = w.FS().Stat(t.Context(), "mine")
	require.ErrorIs(t, err, os.ErrNotExist, "a snapshot is of what is the agent's")
	require.NoError(t, os.Link(secret, filepath.Join(folder(t, dir), "mine")))
	require.NoError(t, w.FS().WriteFile(t.Context(), "mine", []byte("x")))
	data, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "s", string(data), "a write replaces, and does not write through")
}
