// Package workspacetest is the contract of workspace.Provider, run by each
// implementation.
package workspacetest

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog/fact"
)

// Run runs the contract. open returns a provider without workspaces, of which a
// workspace may have 1 MiB.
func Run(t *testing.T, open func(t *testing.T) workspace.Provider) {
	for name, test := range map[string]func(*testing.T, workspace.Provider){
		"files":                        testFiles,
		"folders":                      testFolders,
		"renames":                      testRenames,
		"listings":                     testListings,
		"names":                        testNames,
		"limits":                       testLimits,
		"writers at the same time":     testWriters,
		"open again and resolve":       testResolve,
		"trees and sessions are apart": testApart,
		"remove":                       testRemove,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
	p := open(t)
	if !slices.Contains(p.Capabilities(), fact.WorkspaceSnapshot) {
		return
	}
	for name, test := range map[string]func(*testing.T, workspace.Provider){
		"a snapshot is what was": testSnapshot,
		"restore to nothing":     testRestoreNothing,
		"adopt":                  testAdopt,
		"snapshots are removed":  testSnapshotsRemoved,
		"snapshots are bounded":  testKept,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Session is the one that most of it is about.
var Session = workspace.Session{Root: "Session 1/ü", ID: "Session 1/ü"}

// Open opens a workspace until the test ends.
func Open(t *testing.T, p workspace.Provider, s workspace.Session) workspace.Workspace {
	t.Helper()
	w, ref, err := p.Open(t.Context(), s)
	require.NoError(t, err)
	require.True(t, json.Valid(ref) && ref[0] == '{', "%s", ref)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return w
}

// Files returns all files and what is in them.
func Files(t *testing.T, w workspace.Workspace) map[string]string {
	t.Helper()
	entries, truncated, err := w.FS().List(t.Context(), ".", true)
	require.NoError(t, err)
	require.False(t, truncated)
	all := map[string]string{}
	for _, e := range entries {
		if !e.Mode.IsRegular() {
			continue
		}
		data, err := w.FS().ReadFile(t.Context(), e.Name)
		require.NoError(t, err)
		all[e.Name] = string(data)
	}
	return all
}

func write(t *testing.T, w workspace.Workspace, files map[string]string) {
	t.Helper()
	for name, text := range files {
		require.NoError(t, w.FS().WriteFile(t.Context(), name, []byte(text)))
	}
}

func names(entries []workspace.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Name)
	}
	return all
}

func testFiles(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	_, err := f.ReadFile(ctx, "a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = f.Stat(ctx, "a")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, f.Remove(ctx, "a"), fs.ErrNotExist)

	data := []byte("one")
	require.NoError(t, f.WriteFile(ctx, "a", data))
	data[0] = 'X'
	got, err := f.ReadFile(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, "one", string(got), "what was written is not shared with the caller")
	got[0] = 'X'
	write(t, w, map[string]string{"a": "two, longer", "empty": "", "deep/er/b": "b\x00\xff"})
	require.Equal(t, map[string]string{"a": "two, longer", "empty": "", "deep/er/b": "b\x00\xff"}, Files(t, w))
	e, err := f.Stat(ctx, "a")
	require.NoError(t, err)
	require.Equal(t, int64(11), e.Size)
	require.False(t, e.Dir)
	require.False(t, e.Modified.IsZero())

	require.NoError(t, f.Remove(ctx, "a"))
	_, err = f.ReadFile(ctx, "a")
	require.ErrorIs(t, err, fs.ErrNotExist)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, f.WriteFile(ended, "late", nil), context.Canceled)
}

func testFolders(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	write(t, w, map[string]string{"d/a": "a", "d/e/b": "b"})
	e, err := f.Stat(ctx, "d")
	require.NoError(t, err)
	require.True(t, e.Dir)
	_, err = f.ReadFile(ctx, "d")
	require.ErrorIs(t, err, workspace.ErrFolder)
	_, err = f.ReadFile(ctx, ".")
	require.ErrorIs(t, err, workspace.ErrFolder)
	require.ErrorIs(t, f.WriteFile(ctx, "d", nil), workspace.ErrFolder)
	require.ErrorIs(t, f.WriteFile(ctx, ".", nil), workspace.ErrFolder)
	require.ErrorIs(t, f.WriteFile(ctx, "d/a/x", nil), workspace.ErrNotFolder)
	_, err = f.ReadFile(ctx, "d/a/x")
	require.ErrorIs(t, err, workspace.ErrNotFolder)
	_, _, err = f.List(ctx, "d/a", false)
	require.ErrorIs(t, err, workspace.ErrNotFolder)
	_, _, err = f.List(ctx, "none", false)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, f.Remove(ctx, "."), workspace.ErrName)
	require.NoError(t, f.Remove(ctx, "d"))
	require.Empty(t, Files(t, w))
	deep := strings.Repeat("d/", 100) + "f"
	write(t, w, map[string]string{deep: "x"})
	require.Equal(t, map[string]string{deep: "x"}, Files(t, w))
}

func testRenames(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	write(t, w, map[string]string{"a": "a", "b": "b", "d/c": "c", "d/e/f": "f"})
	require.NoError(t, f.Rename(ctx, "a", "new/a"))
	require.NoError(t, f.Rename(ctx, "new/a", "b"), "a file replaces a file")
	require.NoError(t, f.Rename(ctx, "d", "x/y"))
	require.NoError(t, f.Rename(ctx, "b", "b"))
	require.Equal(t, map[string]string{"b": "a", "x/y/c": "c", "x/y/e/f": "f"}, Files(t, w))
	require.ErrorIs(t, f.Rename(ctx, "none", "z"), fs.ErrNotExist)
	require.ErrorIs(t, f.Rename(ctx, "b", "x"), fs.ErrExist)
	require.ErrorIs(t, f.Rename(ctx, "x", "b"), fs.ErrExist)
	require.ErrorIs(t, f.Rename(ctx, "x", "x/in"), workspace.ErrName)
	require.ErrorIs(t, f.Rename(ctx, "x", "b/in"), workspace.ErrNotFolder)
	require.ErrorIs(t, f.Rename(ctx, ".", "z"), workspace.ErrName)
	require.Equal(t, map[string]string{"b": "a", "x/y/c": "c", "x/y/e/f": "f"}, Files(t, w))
}

func testListings(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	entries, truncated, err := f.List(ctx, ".", true)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.False(t, truncated)
	write(t, w, map[string]string{"b/y": "", "b/x/z": "123", "b.txt": "", "B": "", "a": "", "ä": ""})
	entries, _, err = f.List(ctx, ".", false)
	require.NoError(t, err)
	require.Equal(t, []string{"B", "a", "b", "b.txt", "ä"}, names(entries))
	require.True(t, entries[2].Dir)
	require.False(t, entries[2].Modified.IsZero())
	entries, _, err = f.List(ctx, ".", true)
	require.NoError(t, err)
	require.Equal(t, []string{"B", "a", "b", "b/x", "b/x/z", "b/y", "b.txt", "ä"}, names(entries))
	require.Equal(t, int64(3), entries[4].Size)
	entries, _, err = f.List(ctx, "b", true)
	require.NoError(t, err)
	require.Equal(t, []string{"x", "x/z", "y"}, names(entries))
	require.True(t, entries[0].Dir)
	entries, _, err = f.List(ctx, "b", false)
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, names(entries))
}

// badNames lead nowhere, and what each is.
var badNames = map[string]error{
	"..": workspace.ErrOutside, "../a": workspace.ErrOutside, "a/../../b": workspace.ErrOutside,
	"/": workspace.ErrOutside, "/etc/passwd": workspace.ErrOutside, "//a": workspace.ErrOutside, "./../a": workspace.ErrOutside,
	"": workspace.ErrName, "a/": workspace.ErrName, "a//b": workspace.ErrName, "./a": workspace.ErrName, "a/./b": workspace.ErrName,
	"a/../b": workspace.ErrName, `..\a`: workspace.ErrName, `a\b`: workspace.ErrName, `C:\a`: workspace.ErrName,
	"a\x00b": workspace.ErrName, "a\nb": workspace.ErrName, "a\xffb": workspace.ErrName,
	strings.Repeat("a", workspace.MaxElement+1):        workspace.ErrName,
	strings.Repeat("a/", workspace.MaxPath/2) + "abcd": workspace.ErrName,
}

func testNames(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	write(t, w, map[string]string{"good": "g"})
	for name, want := range badNames {
		_, err := f.ReadFile(ctx, name)
		require.ErrorIs(t, err, want, "%q", name)
		require.ErrorIs(t, f.WriteFile(ctx, name, []byte("x")), want, "%q", name)
		require.ErrorIs(t, f.Remove(ctx, name), want, "%q", name)
		require.ErrorIs(t, f.Rename(ctx, name, "x"), want, "%q", name)
		require.ErrorIs(t, f.Rename(ctx, "good", name), want, "%q", name)
		_, err = f.Stat(ctx, name)
		require.ErrorIs(t, err, want, "%q", name)
		_, _, err = f.List(ctx, name, true)
		require.ErrorIs(t, err, want, "%q", name)
	}
	good := map[string]string{
		"good": "g", "..a": "", "...": "", ".hidden": "", "with space": "", "日本語/🙂": "x", "-rf": "", "*?$": "",
		"'\"": "", "%2e%2e": "", strings.Repeat("n", workspace.MaxElement): "", "CON": "", "~": "",
	}
	write(t, w, good)
	require.Equal(t, good, Files(t, w))
}

func testLimits(t *testing.T, p workspace.Provider) {
	w := Open(t, p, Session)
	f, ctx := w.FS(), t.Context()
	require.ErrorIs(t, f.WriteFile(ctx, "a", make([]byte, workspace.MaxFile+1)), workspace.ErrTooLarge)
	require.NoError(t, f.WriteFile(ctx, "a", make([]byte, 600<<10)))
	require.ErrorIs(t, f.WriteFile(ctx, "b", make([]byte, 600<<10)), workspace.ErrQuota)
	require.NoError(t, f.WriteFile(ctx, "a", make([]byte, 900<<10)), "what it replaces makes room")
	require.ErrorIs(t, f.WriteFile(ctx, "b", make([]byte, 200<<10)), workspace.ErrQuota)
	require.NoError(t, f.WriteFile(ctx, "a", nil))
	require.NoError(t, f.WriteFile(ctx, "b", make([]byte, 900<<10)))
	require.NoError(t, f.Remove(ctx, "b"))
	require.NoError(t, f.WriteFile(ctx, "c", make([]byte, 900<<10)))
	require.Len(t, Files(t, w), 2)
}

func testWriters(t *testing.T, p workspace.Provider) {
	a, b := Open(t, p, Session), Open(t, p, Session)
	var wg sync.WaitGroup
	for i, w := range []workspace.Workspace{a, b, a, b} {
		wg.Go(func() {
			for k := range 8 {
				if err := w.FS().WriteFile(t.Context(), fmt.Sprintf("own/%d-%d", i, k), []byte("x")); err != nil {
					t.Error(err)
				}
				if err := w.FS().WriteFile(t.Context(), "shared", []byte(strings.Repeat(fmt.Sprint(i), 1000))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	all := Files(t, b)
	require.Len(t, all, 4*8+1, "no write is lost")
	require.Equal(t, strings.Repeat(all["shared"][:1], 1000), all["shared"], "a file is one writer's")
	require.Equal(t, all, Files(t, a))
}

func testResolve(t *testing.T, p workspace.Provider) {
	w, ref, err := p.Open(t.Context(), Session)
	require.NoError(t, err)
	write(t, w, map[string]string{"a": "1"})
	again := Open(t, p, Session)
	require.Equal(t, map[string]string{"a": "1"}, Files(t, again), "there is one workspace a session")
	require.NoError(t, w.Close())
	require.NoError(t, w.Close(), "closing twice is closing")
	w, err = p.Resolve(t.Context(), Session, ref)
	require.NoError(t, err)
	defer w.Close()
	require.Equal(t, map[string]string{"a": "1"}, Files(t, w))
	_, err = p.Resolve(t.Context(), workspace.Session{Root: "other", ID: "other"}, ref)
	require.ErrorIs(t, err, workspace.ErrGone)
	_, err = p.Resolve(t.Context(), Session, json.RawMessage(`nonsense`))
	require.Error(t, err)
}

func testApart(t *testing.T, p workspace.Provider) {
	all := []workspace.Session{
		Session, {Root: Session.Root, ID: "child"}, {Root: "session 1/ü", ID: "session 1/ü"}, {Root: "child", ID: "child"},
		{Root: strings.Repeat("r", 200), ID: strings.Repeat("i", 200)}, {Root: "a.b", ID: "*"}, {Root: "..", ID: ".."},
	}
	roots := map[string]bool{}
	for i, s := range all {
		write(t, Open(t, p, s), map[string]string{"mine": fmt.Sprint(i)})
		roots[s.Root] = true
	}
	for i, s := range all {
		require.Equal(t, map[string]string{"mine": fmt.Sprint(i)}, Files(t, Open(t, p, s)))
	}
	got, err := p.Roots(t.Context())
	require.NoError(t, err)
	require.Len(t, got, len(roots))
	for _, root := range got {
		require.True(t, roots[root], root)
	}
}

func testRemove(t *testing.T, p workspace.Provider) {
	other := workspace.Session{Root: "other", ID: "other"}
	child := workspace.Session{Root: Session.Root, ID: "child"}
	w, ref, err := p.Open(t.Context(), Session)
	require.NoError(t, err)
	defer w.Close()
	write(t, w, map[string]string{"a": "1", "b/c": "2"})
	write(t, Open(t, p, child), map[string]string{"a": "1"})
	write(t, Open(t, p, other), map[string]string{"a": "1"})
	_, err = p.Remove(t.Context(), Session.Root)
	require.NoError(t, err)
	require.Error(t, w.FS().WriteFile(t.Context(), "late", []byte("x")), "who has it open still can't bring it back")
	_, err = p.Resolve(t.Context(), Session, ref)
	require.ErrorIs(t, err, workspace.ErrGone)
	roots, err := p.Roots(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"other"}, roots)
	require.Equal(t, map[string]string{"a": "1"}, Files(t, Open(t, p, other)))
	_, err = p.Remove(t.Context(), Session.Root)
	require.NoError(t, err, "removing twice is removing")
	require.Empty(t, Files(t, Open(t, p, Session)), "a new one of that name is empty")
}
