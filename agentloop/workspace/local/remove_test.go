//go:build unix

package local_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/integration/testkit"
)

// fewFiles lets the process have few files open until the test ends.
func fewFiles(t *testing.T, n uint64) {
	t.Helper()
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	few := was
	few.Cur = min(n, was.Cur)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was)) })
}

// dig puts what is there into that many folders of one name within each other,
// some of which are locked.
func dig(t *testing.T, at, inner, name string, n int) {
	t.Helper()
	scratch := t.TempDir()
	for i := range n { // from within: no name becomes too long
		up := filepath.Join(scratch, fmt.Sprint(i))
		require.NoError(t, os.Mkdir(up, 0o700))
		require.NoError(t, os.Rename(inner, filepath.Join(up, name)))
		if i%100 == 50 {
			require.NoError(t, os.Chmod(filepath.Join(up, name), 0))
		}
		inner = up
	}
	require.NoError(t, os.Rename(inner, at))
}

// Commands make more folders within each other than a process may have files
// open.
func TestDeepFoldersAreRemoved(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	const depth, files = 1000, 256
	for name, remove := range map[string]func(p *local.Provider, w workspace.Workspace) error{
		"by the agent": func(_ *local.Provider, w workspace.Workspace) error { return w.FS().Remove(t.Context(), "deep") },
		"by a rollback": func(_ *local.Provider, w workspace.Workspace) error {
			return w.Snapshots().Restore(t.Context(), nil)
		},
		"with the tree": func(p *local.Provider, _ workspace.Workspace) error {
			_, err := p.Remove(t.Context(), workspacetest.Session.Root)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p, w := opened(t)
			deep := filepath.Join(folder(t, dir), "deep")
			innermost := filepath.Join(t.TempDir(), "f")
			require.NoError(t, os.WriteFile(innermost, nil, 0o600))
			dig(t, deep, innermost, "d", depth)
			fewFiles(t, files)
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, w.FS().Remove(ended, "deep"), context.Canceled)
			require.NoError(t, remove(p, w))
			_, err := os.Lstat(deep)
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

// While files of a tree are removed, other trees are used, and who opens that one
// waits.
func TestARemovalHoldsNobodyElseUp(t *testing.T) {
	p := open(t, local.Options{})
	gone, release := local.Use(t, workspacetest.Open(t, p, workspacetest.Session))
	removed := make(chan error, 1)
	go func() {
		_, err := p.Remove(t.Context(), workspacetest.Session.Root)
		removed <- err
	}()
	<-gone
	other := workspacetest.Open(t, p, workspace.Session{Root: "other", ID: "other"})
	require.NoError(t, other.FS().WriteFile(t.Context(), "a", []byte("1")))
	ctx, cancel := context.WithCancelCause(t.Context())
	tired := errors.New("tired of waiting")
	cancel(tired)
	_, _, err := p.Open(ctx, workspacetest.Session)
	require.ErrorIs(t, err, tired)
	release()
	require.NoError(t, <-removed)
	require.Empty(t, workspacetest.Files(t, workspacetest.Open(t, p, workspacetest.Session)))
}

// A snapshot has what its owner can't read, and a rollback brings that back; what
// it can't have does not end snapshots.
func TestSnapshotsOfWhatIsForbidden(t *testing.T) {
	dir, _, w := opened(t)
	own := folder(t, dir)
	require.NoError(t, w.FS().WriteFile(t.Context(), "locked/f", []byte("1")))
	require.NoError(t, w.FS().WriteFile(t.Context(), "f", []byte("2")))
	lock := func() {
		require.NoError(t, os.Chmod(filepath.Join(own, "locked", "f"), 0))
		require.NoError(t, os.Chmod(filepath.Join(own, "locked"), 0))
		require.NoError(t, os.Chmod(filepath.Join(own, "f"), 0))
	}
	lock()
	if err := os.WriteFile(filepath.Join(own, "not UTF-8 \xff"), nil, 0o600); err != nil {
		t.Log("this file system takes no such name:", err)
	}
	require.NoError(t, os.Symlink("\xff", filepath.Join(own, "link")))
	modes := func() (all []fs.FileMode) {
		for _, name := range []string{"f", "locked", "locked/f"} {
			info, err := os.Lstat(filepath.Join(own, name))
			require.NoError(t, err)
			all = append(all, info.Mode().Perm())
			require.NoError(t, os.Chmod(filepath.Join(own, name), 0o700))
		}
		return all
	}
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.Equal(t, []fs.FileMode{0, 0, 0}, modes(), "as they were")

	require.NoError(t, w.FS().WriteFile(t.Context(), "f", []byte("changed")))
	require.NoError(t, w.FS().Remove(t.Context(), "link"))
	require.NoError(t, os.Symlink("\xfe", filepath.Join(own, "link")))
	lock()
	require.NoError(t, w.Snapshots().Restore(t.Context(), s))
	require.Equal(t, []fs.FileMode{0, 0, 0}, modes())
	require.Equal(t, map[string]string{"f": "2", "locked/f": "1"}, workspacetest.Files(t, w))
}
