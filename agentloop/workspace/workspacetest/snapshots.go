package workspacetest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
)

func take(t *testing.T, w workspace.Workspace) json.RawMessage {
	t.Helper()
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(s), workspace.MaxSnapshotRef)
	require.True(t, json.Valid(s) && s[0] == '{', "%s", s)
	return s
}

func testSnapshot(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	first := map[string]string{"a": "1", "d/b": strings.Repeat("large", 60_000), "d/e/c": "3", "empty": "", "swap": "file", "pws/x": ""}
	write(t, w, first)
	one := take(t, w)
	require.Equal(t, string(one), string(take(t, w)), "of the same files")

	require.NoError(t, f.Remove(ctx, "d/e"))
	require.NoError(t, f.Remove(ctx, "swap"))
	require.NoError(t, f.Remove(ctx, "pws"))
	write(t, w, map[string]string{"a": "changed", "new/x": "n", "swap/in": "a folder now", "pws": "a file now", "d/b2": ""})
	second := Files(t, w)
	two := take(t, w)
	require.NotEqual(t, string(one), string(two))
	write(t, w, map[string]string{"a": "not saved"})

	require.NoError(t, w.Snapshots().Restore(ctx, one))
	require.Equal(t, first, Files(t, w))
	require.Equal(t, string(one), string(take(t, w)), "what is restored is what was")
	require.NoError(t, w.Snapshots().Restore(ctx, two))
	require.Equal(t, second, Files(t, w))
	require.NoError(t, w.Snapshots().Restore(ctx, two))
	require.Equal(t, second, Files(t, Open(t, p, Session)))
	require.Error(t, w.Snapshots().Restore(ctx, json.RawMessage(`{"x":1}`)))
	require.Equal(t, second, Files(t, w))
}

func testRestoreNothing(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	write(t, w, map[string]string{"a": "1", "b/c": "2"})
	s := take(t, w)
	require.NoError(t, w.Snapshots().Restore(t.Context(), nil))
	require.Empty(t, Files(t, w))
	require.NoError(t, w.Snapshots().Restore(t.Context(), nil))
	require.NoError(t, w.Snapshots().Restore(t.Context(), s))
	require.Equal(t, map[string]string{"a": "1", "b/c": "2"}, Files(t, w))
}

func testAdopt(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	files := map[string]string{"a": "1", "b/c": strings.Repeat("2", 300<<10)}
	write(t, w, files)
	s := take(t, w)
	write(t, w, map[string]string{"a": "later"})

	fork := workspace.Session{Root: "fork", ID: "fork"}
	own, err := p.Adopt(t.Context(), fork, s)
	require.NoError(t, err)
	again, err := p.Adopt(t.Context(), fork, s)
	require.NoError(t, err)
	require.Equal(t, string(own), string(again))

	_, err = p.Remove(t.Context(), Session.Root)
	require.NoError(t, err)
	f := Open(t, p, fork)
	require.Empty(t, Files(t, f), "a fork's files are there when they are restored")
	require.NoError(t, f.Snapshots().Restore(t.Context(), own))
	require.Equal(t, files, Files(t, f))
	write(t, f, map[string]string{"a": "the fork's"})
	require.NoError(t, f.Snapshots().Restore(t.Context(), own))
	require.Equal(t, files, Files(t, f))
	_, err = p.Adopt(t.Context(), workspace.Session{Root: "late", ID: "late"}, s)
	require.ErrorIs(t, err, workspace.ErrGone)
	require.ErrorIs(t, f.Snapshots().Restore(t.Context(), s), workspace.ErrGone, "the snapshot is of another tree")
}

// testKept fills what snapshots may keep.
func testKept(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	var taken []json.RawMessage
	large := func(i int) map[string]string {
		return map[string]string{"a": strings.Repeat(string(rune('a'+i)), 900<<10)}
	}
	for {
		write(t, w, large(len(taken)))
		s, err := w.Snapshots().Take(t.Context())
		if err != nil {
			require.ErrorIs(t, err, workspace.ErrQuota)
			break
		}
		taken = append(taken, s)
		require.Less(t, len(taken), 20, "there is a limit")
	}
	require.Greater(t, len(taken), 2)
	require.Equal(t, large(len(taken)), Files(t, w), "the files stay as they are")
	require.NoError(t, w.Snapshots().Restore(t.Context(), taken[1]))
	require.Equal(t, large(1), Files(t, w))
	require.Equal(t, string(taken[1]), string(take(t, w)), "what is kept already needs no room")

	// There is room for some 480 KiB.
	write(t, w, map[string]string{"a": strings.Repeat("x", 200<<10)}) // first: it was larger
	write(t, w, map[string]string{"b": strings.Repeat("y", 600<<10)})
	_, err := w.Snapshots().Take(t.Context())
	require.ErrorIs(t, err, workspace.ErrQuota)
	require.NoError(t, w.FS().Remove(t.Context(), "b"))
	write(t, w, map[string]string{"a": strings.Repeat("z", 300<<10)})
	take(t, w) // the failed one keeps nothing
}

func testSnapshotsRemoved(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	for _, text := range []string{"1", "2", "3"} {
		write(t, w, map[string]string{"a": text})
		take(t, w)
	}
	n, err := p.Remove(t.Context(), Session.Root)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = p.Remove(t.Context(), Session.Root)
	require.NoError(t, err)
	require.Zero(t, n)
}
