//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
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

	after, err := local.New(dir, nil)
	require.NoError(t, err)
	again := workspacetest.Open(t, after, workspacetest.Session)
	require.NoDirExists(t, temp)
	require.NoFileExists(t, begun)
	require.Equal(t, map[string]string{"a": "1"}, workspacetest.Files(t, again))
}
