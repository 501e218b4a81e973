package objects_test

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/eventlog"
)

// A session that was imported may say anything of its snapshot, and is forked.
func TestASnapshotsSizeIsNotTrusted(t *testing.T) {
	p := open(t, server(t, t.TempDir()), objects.Options{})
	w := workspacetest.Open(t, p, workspacetest.Session)
	require.NoError(t, w.FS().WriteFile(t.Context(), "file", []byte("x")))
	taken, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	fork := workspace.Session{Root: "fork", ID: "fork"}
	for _, size := range []int64{-1, 1 << 40, math.MaxInt64} {
		said := regexp.MustCompile(`"size":\d+`).ReplaceAll(taken, fmt.Appendf(nil, `"size":%d`, size))
		require.NotEqual(t, string(taken), string(said))
		_, err := p.Adopt(t.Context(), fork, said)
		require.ErrorContains(t, err, "a content is damaged or missing", size)
	}
	_, err = p.Adopt(t.Context(), fork, taken)
	require.NoError(t, err)
}

func everyTree(context.Context, string) (bool, error) { return true, nil }

// A copy has the files and snapshots of the trees that it is about, on another server, and
// nothing of the others.
func TestCopy(t *testing.T) {
	from, to := server(t, t.TempDir()), server(t, t.TempDir())
	for range objects.Copy(t.Context(), from, everyTree) {
		require.Fail(t, "there is no stream")
	}
	p := open(t, from, objects.Options{})
	other := workspace.Session{Root: "a.b *", ID: "a.b *"}
	w, ref, err := p.Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	large := string(make([]byte, 300<<10))
	require.NoError(t, w.FS().WriteFile(t.Context(), "large", []byte(large)))
	require.NoError(t, w.FS().WriteFile(t.Context(), "file", []byte("first")))
	snapshot, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.FS().WriteFile(t.Context(), "file", []byte("second")))
	gone, _, err := p.Open(t.Context(), other)
	require.NoError(t, err)
	require.NoError(t, gone.FS().WriteFile(t.Context(), "secret", []byte("nobody may find this")))

	q := open(t, to, objects.Options{})
	roots := map[string]bool{}
	for item, err := range objects.Copy(t.Context(), from, func(_ context.Context, root string) (bool, error) { return root != other.Root, nil }) {
		require.NoError(t, err)
		root, ok := objects.RootOf(item.Key)
		require.True(t, ok, item.Key)
		roots[root] = true
		require.NotContains(t, string(item.Data), "nobody may find this")
		require.NoError(t, q.Fill(t.Context(), item))
	}
	require.Equal(t, map[string]bool{workspacetest.Session.Root: true}, roots)
	v, err := q.Resolve(t.Context(), workspacetest.Session, ref)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"large": large, "file": "second"}, workspacetest.Files(t, v))
	require.NoError(t, v.FS().WriteFile(t.Context(), "more", []byte("third")))
	require.NoError(t, v.Snapshots().Restore(t.Context(), snapshot))
	require.Equal(t, map[string]string{"large": large, "file": "first"}, workspacetest.Files(t, v))
	listed, err := q.Roots(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{workspacetest.Session.Root}, listed)

	// One that is removed is in no copy.
	_, err = p.Remove(t.Context(), other.Root)
	require.NoError(t, err)
	for item := range objects.Copy(t.Context(), from, everyTree) {
		root, _ := objects.RootOf(item.Key)
		require.NotEqual(t, other.Root, root)
	}
	for _, key := range []string{"", "x", "x.tree.>", "x.part.*", "x.more", "x..head", "%.tree", "x.head.a.b.c"} {
		require.Error(t, q.Fill(t.Context(), eventlog.CopiedItem{Key: key}), key)
	}
}

// A copy of a workspace whose garbage is collected while it changes is whole.
func TestCopyWhileFilesChange(t *testing.T) {
	from := server(t, t.TempDir())
	p := open(t, from, objects.Options{Grace: time.Nanosecond})
	w, ref, err := p.Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wrote := make(chan struct{}, 1)
	wg.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			text := fmt.Sprint(i)
			if err := w.FS().WriteFile(t.Context(), "file", []byte(text)); err == nil {
				_ = p.Collect(t.Context(), workspacetest.Session.Root) // a file that is written just then may be refused
			}
			select {
			case wrote <- struct{}{}:
			default:
			}
		}
	})
	for range 5 {
		<-wrote
		q := open(t, server(t, t.TempDir()), objects.Options{})
		for item, err := range objects.Copy(t.Context(), from, everyTree) {
			require.NoError(t, err)
			require.NoError(t, q.Fill(t.Context(), item))
		}
		v, err := q.Resolve(t.Context(), workspacetest.Session, ref)
		require.NoError(t, err)
		require.Len(t, workspacetest.Files(t, v), 1)
	}
}
