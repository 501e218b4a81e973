//go:build unix

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

// own makes a file or a folder as a command would: the workspace's user is its
// owner.
func own(t *testing.T, at string, size int) {
	t.Helper()
	if size < 0 {
		require.NoError(t, os.Mkdir(at, 0o700))
	} else {
		require.NoError(t, os.WriteFile(at, make([]byte, size), 0o600))
	}
	require.NoError(t, os.Chown(at, ownerOf(t, filepath.Dir(at)), -1))
}

func TestWhatIsLockedCounts(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"locked": 0o000, "no way in": 0o400, "no list": 0o100} {
		t.Run(name, func(t *testing.T) {
			dir := passable(t)
			p, err := local.New(dir, &local.Options{MaxBytes: 1 << 20})
			require.NoError(t, err)
			w := workspacetest.Open(t, p, workspacetest.Session)
			all := folder(t, dir)
			locked := filepath.Join(all, "0")
			own(t, locked, -1)
			own(t, filepath.Join(locked, "f"), 1<<19)
			own(t, filepath.Join(all, "g"), 1<<19)
			require.NoError(t, os.Chmod(locked, mode))
			t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
			require.ErrorIs(t, w.FS().WriteFile(t.Context(), "a", []byte("1")), workspace.ErrQuota)
		})
	}
}

// A file may be as deep as this process looks at it. One that is deeper would have every
// snapshot fail, and every write from the next count on.
func TestWritesAreAsDeepAsSnapshots(t *testing.T) {
	_, _, w := opened(t)
	folders := func(n int) string { return strings.Repeat("d/", n) }
	require.NoError(t, w.FS().WriteFile(t.Context(), folders(local.MaxDepth)+"f", []byte("1")))
	require.ErrorIs(t, w.FS().WriteFile(t.Context(), folders(local.MaxDepth+1)+"f", []byte("1")), workspace.ErrQuota)
	require.ErrorIs(t, w.FS().Rename(t.Context(), folders(local.MaxDepth)+"f", folders(local.MaxDepth+1)+"f"), workspace.ErrQuota)
	_, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
}

// Commands make paths that are far longer than what a file system calls too
// long: who looks at all of them must not need the memory for that.
func TestLongPathsAreTooMuch(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	for name, fill := range map[string]func(t *testing.T, at string){
		"names": func(t *testing.T, at string) {
			inner, long := filepath.Join(t.TempDir(), "inner"), strings.Repeat("n", 246)
			require.NoError(t, os.Mkdir(inner, 0o700))
			for i := range 300 {
				require.NoError(t, os.WriteFile(filepath.Join(inner, fmt.Sprintf("%s%04d", long, i)), nil, 0o600))
			}
			dig(t, at, inner, long, 195)
		},
		"links": func(t *testing.T, at string) {
			require.NoError(t, os.Mkdir(at, 0o700))
			for i := range 4200 {
				require.NoError(t, os.Symlink(strings.Repeat("x", 4000), filepath.Join(at, fmt.Sprint(i))))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, p, w := opened(t)
			fill(t, filepath.Join(folder(t, dir), "long"))
			_, err := w.Snapshots().Take(t.Context())
			require.ErrorIs(t, err, workspace.ErrQuota)
			require.ErrorIs(t, w.FS().WriteFile(t.Context(), "a", []byte("1")), workspace.ErrQuota)
			if p.ShellProblem() == nil {
				_, err = w.Shell().Run(t.Context(), workspace.Command{Line: "true"})
				require.ErrorIs(t, err, workspace.ErrQuota)
				require.Regexp(t, "^the workspace is full", err.Error())
			}
			require.NoError(t, w.FS().Remove(t.Context(), "long"))
			require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")), "what has too much can be cleared")
		})
	}
}

// ending is a context that ends when it was asked a few times.
type ending struct {
	context.Context
	left int
}

func (c *ending) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCountingEndsWithItsContext(t *testing.T) {
	dir, _, w := opened(t)
	for i := range 100 {
		own(t, filepath.Join(folder(t, dir), fmt.Sprint(i)), 0)
	}
	ctx := func() context.Context { return &ending{context.Background(), 50} }
	_, _, err := w.FS().List(ctx(), ".", true)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, w.FS().WriteFile(ctx(), "a", nil), context.Canceled)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", nil))
}

// What a process that was killed was writing, and its commands' temporary files.
func TestWhatAKilledProcessLeftIsRemoved(t *testing.T) {
	dir, _, w := opened(t)
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	files := folder(t, dir)
	tree := filepath.Dir(filepath.Dir(files))
	temp := filepath.Join(files, ".helix", "tmp-x")
	own(t, temp, -1)
	own(t, filepath.Join(temp, "big"), 100)
	begun := filepath.Join(tree, "contents", ".new-x")
	require.NoError(t, os.WriteFile(begun, nil, 0o600))
	started, starting := filepath.Join(dir, ".probe-1"), filepath.Join(dir, ".probe-2")
	own(t, started, -1)
	own(t, filepath.Join(started, "x"), 1)
	own(t, starting, -1)
	before := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(started, before, before))

	after, err := local.New(dir, nil)
	require.NoError(t, err)
	again := workspacetest.Open(t, after, workspacetest.Session)
	require.NoDirExists(t, temp)
	require.NoFileExists(t, begun)
	require.NoDirExists(t, started)
	require.DirExists(t, starting, "it may be another process's")
	require.Equal(t, map[string]string{"a": "1"}, workspacetest.Files(t, again))
}
