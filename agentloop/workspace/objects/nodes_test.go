package objects_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
)

func TestFilesFollowTheSessionToAnyNode(t *testing.T) {
	nc := server(t, t.TempDir())
	a, b := open(t, nc, objects.Options{}), open(t, nc, objects.Options{})
	w, ref, err := a.Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	large := strings.Repeat("many parts ", workspace.MaxFile/11)
	require.NoError(t, w.FS().WriteFile(t.Context(), "large", []byte(large)))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)

	there, err := b.Resolve(t.Context(), workspacetest.Session, ref)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"large": large}, workspacetest.Files(t, there))
	require.NoError(t, there.FS().WriteFile(t.Context(), "large", []byte("small")))
	require.Equal(t, map[string]string{"large": "small"}, workspacetest.Files(t, w), "the first node sees it")
	own, err := b.Adopt(t.Context(), workspace.Session{Root: "fork", ID: "fork"}, s)
	require.NoError(t, err)
	fork := workspacetest.Open(t, a, workspace.Session{Root: "fork", ID: "fork"})
	require.NoError(t, fork.Snapshots().Restore(t.Context(), own))
	require.Equal(t, map[string]string{"large": large}, workspacetest.Files(t, fork))
}

// A node that has not noticed that it lost the session writes on.
func TestNodesThatWriteAtOnceLoseNoFile(t *testing.T) {
	nc := server(t, t.TempDir())
	var all []workspace.Workspace
	for range 3 {
		all = append(all, workspacetest.Open(t, open(t, nc, objects.Options{}), workspacetest.Session))
	}
	var wg sync.WaitGroup
	for i, w := range all {
		wg.Go(func() {
			for k := range 10 {
				name, moved := fmt.Sprintf("%d/%d", i, k), fmt.Sprintf("%d/moved-%d", i, k)
				err := w.FS().WriteFile(t.Context(), name, []byte{byte(i), byte(k)})
				if err == nil {
					err = w.FS().Rename(t.Context(), name, moved)
				}
				if err == nil && k%2 == 1 {
					err = w.FS().Remove(t.Context(), moved)
				}
				if err == nil {
					_, err = w.Snapshots().Take(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	want := map[string]string{}
	for i := range all {
		for k := 0; k < 10; k += 2 {
			want[fmt.Sprintf("%d/moved-%d", i, k)] = string([]byte{byte(i), byte(k)})
		}
	}
	for _, w := range all {
		require.Equal(t, want, workspacetest.Files(t, w))
	}
}

func TestFilesOutliveTheServer(t *testing.T) {
	dir := t.TempDir()
	var s []byte
	t.Run("before", func(t *testing.T) {
		w := workspacetest.Open(t, open(t, server(t, dir), objects.Options{}), workspacetest.Session)
		require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("1")))
		taken, err := w.Snapshots().Take(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.FS().WriteFile(t.Context(), "a", []byte("2")))
		s = taken
	})
	t.Run("after", func(t *testing.T) {
		w := workspacetest.Open(t, open(t, server(t, dir), objects.Options{}), workspacetest.Session)
		require.Equal(t, map[string]string{"a": "2"}, workspacetest.Files(t, w))
		require.NoError(t, w.Snapshots().Restore(t.Context(), s))
		require.Equal(t, map[string]string{"a": "1"}, workspacetest.Files(t, w))
	})
}

func TestAnEndedContextEndsACall(t *testing.T) {
	w := workspacetest.Open(t, open(t, server(t, t.TempDir()), objects.Options{}), workspacetest.Session)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.FS().WriteFile(ctx, "a", nil), context.Canceled)
	_, err := w.Snapshots().Take(ctx)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAStreamThatDeletesIsRefused(t *testing.T) {
	nc := server(t, t.TempDir())
	js := jetStream(t, nc)
	createStream(t, js)
	_, err := objects.Open(t.Context(), nc, nil)
	require.ErrorContains(t, err, "HELIX_WORKSPACES")
}

func TestAStreamWithOtherReplicasIsRefused(t *testing.T) {
	nc := server(t, t.TempDir())
	open(t, nc, objects.Options{})
	_, err := objects.Open(t.Context(), nc, &objects.Options{Replicas: 3})
	require.ErrorContains(t, err, "num_replicas is 1, must be 3")
}

// strike is a context that calls end when it was asked often.
type strike struct {
	context.Context
	left atomic.Int64
	end  func()
}

func (s *strike) Done() <-chan struct{} {
	if s.left.Add(-1) == 0 {
		s.end()
	}
	return s.Context.Done()
}

// What an earlier try of a fork has copied may be removed while the fork is tried again: it
// fails, is whole, or is gone whole.
func TestACopyWhoseLeftoversAreRemoved(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{})
	w := workspacetest.Open(t, p, workspacetest.Session)
	files := map[string]string{"a": "1"}
	for name, text := range files {
		require.NoError(t, w.FS().WriteFile(t.Context(), name, []byte(text)))
	}
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	for after, removed := int64(1), true; removed; after++ {
		fork := workspace.Session{Root: fmt.Sprint("fork", after), ID: "fork"}
		f := workspacetest.Open(t, p, fork)
		for name, text := range files { // as copied by the earlier try
			require.NoError(t, f.FS().WriteFile(t.Context(), name, []byte(text)))
		}
		removed = false
		ctx := &strike{Context: t.Context(), end: func() {
			removed = true
			_, err := p.Remove(t.Context(), fork.Root)
			require.NoError(t, err)
		}}
		ctx.left.Store(after)
		own, err := p.Adopt(ctx, fork, s)
		if err != nil {
			continue
		}
		f = workspacetest.Open(t, p, fork)
		if err := f.Snapshots().Restore(t.Context(), own); !errors.Is(err, workspace.ErrGone) {
			require.NoError(t, err)
			require.Equal(t, files, workspacetest.Files(t, f), "removed after %d", after)
		}
	}
}

// A fork that took too long continues where it was when it is asked for again.
func TestACopyGoesOn(t *testing.T) {
	nc := server(t, t.TempDir())
	p := open(t, nc, objects.Options{})
	w := workspacetest.Open(t, p, workspacetest.Session)
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprint(i)] = strings.Repeat(fmt.Sprint(i), 100_000)
		require.NoError(t, w.FS().WriteFile(t.Context(), fmt.Sprint(i), []byte(files[fmt.Sprint(i)])))
	}
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	fork := workspace.Session{Root: "fork", ID: "fork"}
	tries := 0
	var own json.RawMessage
	for err = errors.New("not asked"); err != nil; tries++ {
		ended, cancel := context.WithCancel(t.Context())
		ctx := &strike{Context: ended, end: cancel}
		ctx.left.Store(60)
		own, err = p.Adopt(ctx, fork, s)
		cancel()
		require.Less(t, tries, 100)
	}
	require.Greater(t, tries, 1)
	f := workspacetest.Open(t, p, fork)
	require.NoError(t, f.Snapshots().Restore(t.Context(), own))
	require.Equal(t, files, workspacetest.Files(t, f))
}

// Many trees don't have what is in use forgotten, nor what was used last: two snapshots of a
// tree would be taken at once, and all snapshots be read again.
func TestTreesInUseAreNotForgotten(t *testing.T) {
	p := objects.Knowing()
	use := func(root string) (release func()) {
		release, err := p.Use(t.Context(), root)
		require.NoError(t, err)
		return release
	}
	release := use("in use")
	defer release()
	use("often")()
	for i := range 2 * objects.MaxTrees {
		use(fmt.Sprint(i))()
		use("often")()
	}
	require.True(t, p.Knows("in use"))
	require.True(t, p.Knows("often"))
	require.True(t, p.Knows(fmt.Sprint(2*objects.MaxTrees-1)))
	require.False(t, p.Knows("0"))
}
