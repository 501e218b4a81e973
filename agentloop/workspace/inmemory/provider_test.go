package inmemory_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/inmemory"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
)

func TestContract(t *testing.T) {
	workspacetest.Run(t, func(*testing.T) workspace.Provider {
		return inmemory.New(&inmemory.Options{MaxBytes: 1 << 20})
	})
}

func TestFilesEndWithTheProcess(t *testing.T) {
	_, ref, err := inmemory.New(nil).Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	after := inmemory.New(nil)
	workspacetest.Open(t, after, workspacetest.Session)
	_, err = after.Resolve(t.Context(), workspacetest.Session, ref)
	require.ErrorIs(t, err, workspace.ErrGone, "also where the session has another one already")
}

// When there is no room, the files go that were let go of first. Who has a
// workspace open keeps it.
func TestFilesGoWhenOthersNeedTheRoom(t *testing.T) {
	p, ctx := inmemory.New(&inmemory.Options{MaxTotal: 64 << 10}), t.Context()
	refs := map[string]json.RawMessage{}
	open := func(id string) workspace.Workspace {
		w, ref, err := p.Open(ctx, workspace.Session{Root: id, ID: id})
		require.NoError(t, err)
		refs[id] = ref
		return w
	}
	find := func(id string) (workspace.Workspace, error) {
		return p.Resolve(ctx, workspace.Session{Root: id, ID: id}, refs[id])
	}
	write := func(w workspace.Workspace, name string) error {
		return w.FS().WriteFile(ctx, name, make([]byte, 16<<10))
	}
	a, b, c := open("a"), open("b"), open("c")
	for _, w := range []workspace.Workspace{a, b, c} {
		require.NoError(t, write(w, "1"))
	}
	require.NoError(t, b.Close())
	require.NoError(t, a.Close())
	require.NoError(t, write(c, "2"))
	require.ErrorIs(t, write(b, "2"), workspace.ErrGone)
	_, err := find("b")
	require.ErrorIs(t, err, workspace.ErrGone)
	a, err = find("a")
	require.NoError(t, err)
	require.Len(t, workspacetest.Files(t, a), 1)

	require.ErrorIs(t, write(c, "3"), workspace.ErrQuota)
	require.NoError(t, write(c, "2"), "what it replaces makes room")
	require.NoError(t, c.FS().Rename(ctx, "2", "1"))
	require.NoError(t, write(c, "2"), "so does what is replaced")
	require.ErrorIs(t, write(c, "3"), workspace.ErrQuota)
	require.Len(t, workspacetest.Files(t, c), 2)
	require.NoError(t, a.Close())
	require.NoError(t, write(c, "3"))
	roots, err := p.Roots(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"c"}, roots)

	_, err = p.Remove(ctx, "c")
	require.NoError(t, err)
	b = open("b")
	require.Empty(t, workspacetest.Files(t, b))
	for _, name := range []string{"1", "2", "3"} {
		require.NoError(t, write(b, name))
	}
	require.NoError(t, c.Close())
}

func TestTheRoomIsNeverMoreThanItIs(t *testing.T) {
	const total, sessions, size = 256 << 10, 20, 32 << 10
	p := inmemory.New(&inmemory.Options{MaxTotal: total})
	var refs [sessions]json.RawMessage
	session := func(i int) workspace.Session { return workspace.Session{Root: fmt.Sprint(i), ID: "s"} }
	var wg sync.WaitGroup
	for i := range refs {
		wg.Go(func() {
			for range 50 {
				w, ref, err := p.Open(t.Context(), session(i))
				if errors.Is(err, workspace.ErrQuota) {
					continue
				}
				assert.NoError(t, err)
				refs[i] = ref
				err = w.FS().WriteFile(t.Context(), "a", make([]byte, size))
				assert.True(t, err == nil || errors.Is(err, workspace.ErrQuota), err)
				assert.NoError(t, w.Close())
			}
		})
	}
	wg.Wait()
	left := 0
	for i, ref := range refs {
		if w, err := p.Resolve(t.Context(), session(i), ref); ref != nil && err == nil {
			left += size * len(workspacetest.Files(t, w))
		}
	}
	require.LessOrEqual(t, left, total)
	require.Positive(t, left)
}
