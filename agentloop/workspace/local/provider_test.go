package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/local"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
)

// passable returns a folder that commands of another user can reach, too.
func passable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for up := dir; up != filepath.Clean(os.TempDir()) && up != filepath.Dir(up); up = filepath.Dir(up) {
		require.NoError(t, os.Chmod(up, 0o755))
	}
	return dir
}

func open(t *testing.T, o local.Options) *local.Provider {
	t.Helper()
	p, err := local.New(passable(t), &o)
	require.NoError(t, err)
	return p
}

// needsShell skips a test where no command can be run.
func needsShell(t *testing.T, p *local.Provider) {
	t.Helper()
	if err := p.ShellProblem(); err != nil {
		t.Skip("needs commands:", err)
	}
}

// needsIsolation skips a test where commands can't be isolated.
func needsIsolation(t *testing.T, p *local.Provider) {
	t.Helper()
	if !p.Isolated() {
		t.Skip("needs namespaces: this kernel does not let this user have them")
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	workspacetest.Run(t, func(t *testing.T) workspace.Provider { return open(t, local.Options{MaxBytes: 1 << 20}) })
}

// A file that is not the provider's keeps no trees from being listed.
func TestAStrayFileIsNoTree(t *testing.T) {
	dir := t.TempDir()
	p, err := local.New(dir, nil)
	require.NoError(t, err)
	workspacetest.Open(t, p, workspacetest.Session)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trees", "stray"), nil, 0o600))
	roots, err := p.Roots(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{workspacetest.Session.Root}, roots)
}

// A caller does not wait for a workspace that is in use longer than it may.
func TestWaitingForAWorkspaceEndsWithTheContext(t *testing.T) {
	w := workspacetest.Open(t, open(t, local.Options{}), workspacetest.Session)
	_, release := local.Use(t, w)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := w.Snapshots().Take(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, w.Snapshots().Restore(ctx, nil), context.DeadlineExceeded)
	release()
	release = local.TakeOver(w)
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _, err = w.FS().List(ctx, ".", false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	release()
	_, _, err = w.FS().List(t.Context(), ".", false)
	require.NoError(t, err)
}

// Readers that overlap keep no snapshot waiting: a new one waits for it.
func TestASnapshotIsBeforeNewReaders(t *testing.T) {
	w := workspacetest.Open(t, open(t, local.Options{}), workspacetest.Session)
	take := func(ctx context.Context) error { _, err := w.Snapshots().Take(ctx); return err }
	restore := func(ctx context.Context) error { return w.Snapshots().Restore(ctx, nil) }
	for _, write := range []func(context.Context) error{take, restore} {
		_, release := local.Use(t, w)
		release = sync.OnceFunc(release)
		defer release() // or the workspace could not be closed
		abandoned, abandon := context.WithCancel(t.Context())
		defer abandon()
		ended, list := make(chan error, 2), func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, _, err := w.FS().List(ctx, ".", false)
			return err
		}
		go func() { ended <- write(abandoned) }()
		go func() { ended <- write(t.Context()) }()
		waits := func() bool { return errors.Is(list(), context.DeadlineExceeded) }
		require.Eventually(t, waits, 2*time.Second, time.Millisecond)
		abandon()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.True(t, waits(), "the other one still waits")
		release()
		require.NoError(t, <-ended)
		require.NoError(t, list())
	}
}
