//go:build unix

package local_test

import (
	"context"
	"errors"
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
	"github.com/helixd/helixd/integration/testkit"
)

// folder returns the session's folder on the disk.
func folder(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "trees", "*", "files", "*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

func opened(t *testing.T) (dir string, p *local.Provider, w workspace.Workspace) {
	t.Helper()
	dir = passable(t)
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	return dir, p, workspacetest.Open(t, p, workspacetest.Session)
}

func TestLinksDoNotLeadOut(t *testing.T) {
	dir, _, w := opened(t)
	f, ctx, own := w.FS(), t.Context(), folder(t, dir)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("s"), 0o666))
	up, err := filepath.Rel(own, secret)
	require.NoError(t, err)
	for name, target := range map[string]string{
		"absolute": secret, "relative": up, "folder": outside, "root": "/", "up": "..", "passwd": "/etc/passwd",
		"self": own, "loop": "loop", "proc": "/proc/self/root",
	} {
		require.NoError(t, os.Symlink(target, filepath.Join(own, name)))
	}
	require.NoError(t, os.Symlink("absolute", filepath.Join(own, "twice")))
	for _, name := range []string{
		"absolute", "relative", "twice", "passwd", "folder/secret", "root/etc/passwd", "up/x", "self/x", "proc/etc/passwd",
	} {
		_, err := f.ReadFile(ctx, name)
		require.ErrorIs(t, err, workspace.ErrOutside, name)
		require.NotContains(t, err.Error(), dir, "paths of the machine are not revealed")
		_, err = f.Stat(ctx, name)
		require.ErrorIs(t, err, workspace.ErrOutside, name)
	}
	for _, name := range []string{"folder/new", "up/new", "root/etc/new", "self/new"} {
		require.ErrorIs(t, f.WriteFile(ctx, name, []byte("x")), workspace.ErrOutside, name)
		require.ErrorIs(t, f.Rename(ctx, "loop", name), workspace.ErrOutside, name)
	}
	require.ErrorIs(t, f.Remove(ctx, "folder/secret"), workspace.ErrOutside)
	require.ErrorIs(t, f.Rename(ctx, "folder/secret", "mine"), workspace.ErrOutside)
	_, _, err = f.List(ctx, "folder", true)
	require.Error(t, err)
	_, err = f.ReadFile(ctx, "loop")
	require.Error(t, err)
	entries, _, err := f.List(ctx, ".", true)
	require.NoError(t, err)
	require.Len(t, entries, 10, "links are listed, and not followed")

	require.NoError(t, f.WriteFile(ctx, "absolute", []byte("mine")), "a link is replaced itself")
	require.NoError(t, f.Remove(ctx, "folder"))
	data, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "s", string(data))
}

func TestLinksWithinAreFollowed(t *testing.T) {
	dir, _, w := opened(t)
	require.NoError(t, w.FS().WriteFile(t.Context(), "d/a", []byte("text")))
	require.NoError(t, os.Symlink("d", filepath.Join(folder(t, dir), "link")))
	require.NoError(t, os.Symlink("../d/a", filepath.Join(folder(t, dir), "d", "b")))
	for _, name := range []string{"link/a", "d/b", "link/b"} {
		data, err := w.FS().ReadFile(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, "text", string(data))
	}
	require.NoError(t, w.FS().WriteFile(t.Context(), "link/c", nil))
	_, err := w.FS().Stat(t.Context(), "d/c")
	require.NoError(t, err)
}

// A link and a folder change places as fast as they can while files are used
// through them.
func TestLinksThatAreExchangedDoNotLeadOut(t *testing.T) {
	t.Parallel()
	dir, _, w := opened(t)
	outside := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o666))
	own := folder(t, dir)
	require.NoError(t, w.FS().WriteFile(t.Context(), "real/f", []byte("mine")))
	require.NoError(t, os.Symlink(outside, filepath.Join(own, "link")))
	ctx, cancel := context.WithCancel(t.Context())
	exchanged := make(chan struct{})
	go func() {
		defer close(exchanged)
		at := func(name string) string { return filepath.Join(own, name) }
		for ctx.Err() == nil {
			for _, name := range []string{"real", "link"} {
				_ = os.RemoveAll(at("at")) // which a write has made
				_ = os.Rename(at(name), at("at"))
				_ = os.Rename(at("at"), at(name))
			}
		}
	}()
	defer func() { cancel(); <-exchanged }()
	read, refused := 0, 0
	for began := time.Now(); time.Since(began) < time.Second || read == 0 || refused == 0; { // both were met
		require.Less(t, time.Since(began), 2*time.Minute)
		data, err := w.FS().ReadFile(t.Context(), "at/f")
		if err == nil {
			require.Equal(t, "mine", string(data))
			read++
		}
		if errors.Is(err, workspace.ErrOutside) {
			refused++
		}
		if err := w.FS().WriteFile(t.Context(), "at/new", []byte("x")); err == nil || !errors.Is(err, workspace.ErrOutside) {
			_ = w.FS().Remove(t.Context(), "at/f2")
		}
		_, _, _ = w.FS().List(t.Context(), "at", true)
		_ = w.FS().Rename(t.Context(), "at/new", "at/newer")
	}
	cancel()
	<-exchanged
	entries, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing came or went outside")
}

func TestWhatIsNoFileIsNotRead(t *testing.T) {
	dir, _, w := opened(t)
	own := folder(t, dir)
	require.NoError(t, syscall.Mkfifo(filepath.Join(own, "pipe"), 0o666))
	_, err := w.FS().ReadFile(t.Context(), "pipe")
	require.ErrorIs(t, err, workspace.ErrName, "and nobody waits for it")
	_, _, err = w.FS().List(t.Context(), "pipe", true)
	require.ErrorIs(t, err, workspace.ErrNotFolder)
	require.NoError(t, w.FS().WriteFile(t.Context(), "pipe", []byte("a file now")))
	big := filepath.Join(own, "big")
	require.NoError(t, os.WriteFile(big, make([]byte, workspace.MaxFile+1), 0o600))
	require.NoError(t, os.Chown(big, ownerOf(t, own), -1))
	_, err = w.FS().ReadFile(t.Context(), "big")
	require.ErrorIs(t, err, workspace.ErrTooLarge)
}

func ownerOf(t *testing.T, name string) int {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

func TestThePrivateFolderIsNotTheAgents(t *testing.T) {
	dir, _, w := opened(t)
	f, ctx := w.FS(), t.Context()
	require.NoError(t, f.WriteFile(ctx, "a", []byte("1")))
	for _, name := range []string{".helix", ".helix/x"} {
		_, err := f.ReadFile(ctx, name)
		require.ErrorIs(t, err, workspace.ErrOutside)
		require.ErrorIs(t, f.WriteFile(ctx, name, nil), workspace.ErrOutside)
		require.ErrorIs(t, f.Remove(ctx, name), workspace.ErrOutside)
	}
	require.Equal(t, map[string]string{"a": "1"}, workspacetest.Files(t, w))
	left, err := os.ReadDir(filepath.Join(folder(t, dir), ".helix"))
	require.NoError(t, err)
	require.Empty(t, left)
	// A command puts something else there.
	require.NoError(t, os.Remove(filepath.Join(folder(t, dir), ".helix")))
	require.NoError(t, os.Symlink(t.TempDir(), filepath.Join(folder(t, dir), ".helix")))
	require.NoError(t, f.WriteFile(ctx, "b", []byte("2")))
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, workspacetest.Files(t, w))
}

func TestDeepAndManyFilesAreBounded(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	dir, _, w := opened(t)
	own, err := os.OpenRoot(folder(t, dir))
	require.NoError(t, err)
	defer own.Close()
	at := "."
	for range 260 {
		at = filepath.Join(at, "d")
		require.NoError(t, own.Mkdir(at, 0o777))
	}
	require.ErrorIs(t, w.FS().WriteFile(t.Context(), "a", []byte("1")), workspace.ErrQuota)
	_, truncated, err := w.FS().List(t.Context(), ".", true)
	require.ErrorIs(t, err, workspace.ErrQuota)
	require.False(t, truncated)
	require.NoError(t, w.FS().Remove(t.Context(), "d"))
	require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
	_, err = w.FS().Stat(t.Context(), "d")
	require.ErrorIs(t, err, fs.ErrNotExist)
	for i := range workspace.MaxEntries + 1 {
		name := filepath.Join(folder(t, dir), time.Duration(i).String())
		require.NoError(t, os.WriteFile(name, nil, 0o600))
	}
	entries, truncated, err := w.FS().List(t.Context(), ".", false)
	require.NoError(t, err)
	require.True(t, truncated)
	require.Len(t, entries, workspace.MaxEntries)
}
