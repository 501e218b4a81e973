package snapshot_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/integrity"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/jsondoc"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
	foldsmem "github.com/helixd/helixd/snapshot/memory"
	"github.com/helixd/helixd/snapshot/pack"
)

// disk is a log with saved folds on a server with a disk.
type disk struct {
	dir   string
	log   *logjs.Log
	folds *foldsjs.Folds
	saved natsjs.Stream
}

func onDisk(t *testing.T) disk {
	d := disk{dir: t.TempDir()}
	_, nc := embedtest.Start(t, embed.Options{DataDir: d.dir, SyncInterval: time.Minute})
	var err error
	d.log, err = logjs.Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { d.log.Close() })
	d.folds, err = foldsjs.Open(t.Context(), nc, layout.Hashed(1), 1)
	require.NoError(t, err)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	d.saved, err = js.Stream(t.Context(), "HELIX_SNAP_0")
	require.NoError(t, err)
	return d
}

// subjects are the stored subjects that contain part.
func (d disk) subjects(t *testing.T, part string) (all []string) {
	info, err := d.saved.Info(t.Context(), natsjs.WithSubjectFilter(">"))
	require.NoError(t, err)
	for s := range info.State.Subjects {
		if strings.Contains(s, part) {
			all = append(all, s)
		}
	}
	return all
}

// lose removes stored messages.
func (d disk) lose(t *testing.T, subjects ...string) {
	for _, s := range subjects {
		m, err := d.saved.GetLastMsgForSubject(t.Context(), s)
		require.NoError(t, err)
		require.NoError(t, d.saved.DeleteMsg(t.Context(), m.Sequence))
	}
}

// TestFoldsOfTwoForms: a store keeps folds in JSON and packed ones side by side,
// whatever their size.
func TestFoldsOfTwoForms(t *testing.T) {
	small, large := projector.Fold(fill(t, memory.New(), 20)...), projector.Fold(fill(t, memory.New(), 30)...)
	large.CustomState = jsondoc.New([]byte(`{"large":"` + strings.Repeat("0123456789", 60_000) + `"}`))
	for i := range 1_000 {
		large.Messages = append(large.Messages, projector.Message{Role: projector.RoleUser, Sequence: uint64(i), Content: strings.Repeat("ab", i)})
	}
	for name, folds := range map[string]snapshot.Folds{"memory": &foldsmem.Folds{}, "jetstream": onDisk(t).folds} {
		save := func(tree *projector.Tree, form snapshot.Form, digest string) int {
			s := snapshot.Saved{Sequence: tree.Head, Version: projector.Version, Digest: digest, Form: form, State: []byte(marshal(t, tree))}
			if form == snapshot.Packed {
				s.State, s.Cuts = pack.Encode(tree)
			}
			size, err := folds.Save(t.Context(), "s", s)
			require.NoError(t, err)
			return size
		}
		near := func(n uint64, forms ...snapshot.Form) *snapshot.Saved {
			s, err := folds.Nearest(t.Context(), "s", n, forms...)
			require.NoError(t, err)
			return s
		}
		require.Nil(t, near(100, snapshot.JSON, snapshot.Packed), name)
		save(small, snapshot.JSON, "a")
		save(small, snapshot.Packed, "b")
		save(large, snapshot.Packed, "c")
		_, err := folds.Save(t.Context(), "s", snapshot.Saved{Sequence: 25, Form: "another", State: []byte("x")})
		require.NoError(t, err)

		for n, want := range map[uint64]string{19: "", 20: "b", 29: "b", 30: "c", 99: "c"} {
			s := near(n, snapshot.Packed, snapshot.JSON)
			if want == "" {
				require.Nil(t, s, name)
				continue
			}
			require.Equal(t, want, s.Digest, name)
			require.Equal(t, projector.Version, s.Version)
			require.Equal(t, snapshot.Packed, s.Form)
			tree := new(projector.Tree)
			require.NoError(t, pack.Decode(s.State, tree))
			require.Equal(t, s.Sequence, tree.Head)
			require.Len(t, tree.Messages, map[uint64]int{20: 0, 30: 1_000}[tree.Head])
		}
		require.Equal(t, "a", near(99, snapshot.JSON).Digest, name)
		require.JSONEq(t, marshal(t, small), string(near(99, snapshot.JSON).State))
		all, err := folds.Sequences(t.Context(), "s", snapshot.JSON, snapshot.Packed)
		require.NoError(t, err)
		require.Equal(t, []uint64{20, 30}, all, name)
		all, err = folds.Sequences(t.Context(), "s", snapshot.JSON)
		require.NoError(t, err)
		require.Equal(t, []uint64{20}, all, name)

		// The same sequence of a log that has lost its end.
		save(small, snapshot.Packed, "d")
		require.Equal(t, "d", near(20, snapshot.Packed).Digest, name)
		save(large, snapshot.JSON, "e")
		require.True(t, marshal(t, large) == string(near(30, snapshot.JSON).State), name)

		require.NoError(t, folds.Erase(t.Context(), "s"))
		require.Nil(t, near(100, snapshot.JSON, snapshot.Packed, "another"), name)
	}
}

// TestASavedFoldStays: a fold may be all that is left of records that retention has
// removed. Another pass that saves it once more removes nothing of it, and completes one
// that was interrupted; it replaces that of another version.
func TestASavedFoldStays(t *testing.T) {
	d := onDisk(t)
	for seq, size := range map[uint64]int{10: 100, 20: 1_200_000} {
		saved := snapshot.Saved{Sequence: seq, Version: 2, Digest: "d", State: []byte(`"` + strings.Repeat("a", size) + `"`)}
		save := func(s snapshot.Saved) natsjs.StreamState {
			t.Helper()
			_, err := d.folds.Save(t.Context(), "s", s)
			require.NoError(t, err)
			got, err := d.folds.Nearest(t.Context(), "s", seq, snapshot.JSON)
			require.NoError(t, err)
			require.Equal(t, s.Version, got.Version)
			require.True(t, string(s.State) == string(got.State))
			info, err := d.saved.Info(t.Context())
			require.NoError(t, err)
			return info.State
		}
		other := saved
		other.Version, other.State = 1, []byte(`"`+strings.Repeat("b", size)+`"`)
		save(other)
		first := save(saved)
		require.Equal(t, first, save(saved))

		d.lose(t, fmt.Sprintf("helix.snap.0.s.%d", seq))
		again := save(saved)
		require.Equal(t, first.Msgs, again.Msgs)
		require.Equal(t, first.LastSeq+1, again.LastSeq, "its parts are still there")
	}
}

// TestAFoldWithoutAPart: a saved fold of which something is lost has no state, which is no
// failure: older ones may have what is needed.
func TestAFoldWithoutAPart(t *testing.T) {
	d := onDisk(t)
	saveFold(t, d.folds, snapshot.Saved{Sequence: 20, Version: 2, Digest: "d", State: []byte(`"` + strings.Repeat("a", 1_200_000) + `"`)})
	d.lose(t, "helix.snap.0.s.20.1")
	got, err := d.folds.Nearest(t.Context(), "s", 30, snapshot.JSON)
	require.NoError(t, err)
	require.Equal(t, &snapshot.Saved{Sequence: 20, Version: 2, Digest: "d"}, got)
}

// TestALongSessionsStatesAreNear: once a long session has been read, any state of it is
// computed from a few hundred records, also in a process that has not read it. The saved
// folds take less space than the records.
func TestALongSessionsStatesAreNear(t *testing.T) {
	const records = 8_000
	d := onDisk(t)
	entries := logtest.LongSession("s", records)
	size := 0
	for _, e := range entries {
		size += len(e.Payload)
	}
	live := new(projector.Tree)
	want := map[uint64]string{}
	appendAll(t, d.log, "s", 0, entries)
	for r, err := range d.log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		projector.Apply(live, r)
		if r.Sequence%571 == 0 {
			want[r.Sequence] = marshal(t, live)
		}
	}
	_, err := snapshot.New(d.log, &snapshot.StoreOptions{Folds: d.folds}).Head(t.Context(), "s")
	require.NoError(t, err)

	counted := &counting{Log: d.log}
	for n, state := range want {
		counted.read = 0
		got, err := snapshot.New(counted, &snapshot.StoreOptions{Folds: d.folds}).At(t.Context(), "s", n)
		require.NoError(t, err)
		require.LessOrEqual(t, counted.read, snapshot.DefaultSaveEvery+snapshot.KeyframeEvery+1)
		require.Equal(t, state, marshal(t, got), "at %d", n)
		// The caller may change it.
		projector.Apply(got, eventlog.Record{Sequence: got.Head + 1, Entry: userMessage(t, "mine")})
	}
	info, err := d.saved.Info(t.Context())
	require.NoError(t, err)
	require.Less(t, info.State.Bytes, uint64(size))
	require.Empty(t, verified(t, d.log, d.folds))
}

// TestLostPagesCostTimeOnly: whatever saved data is lost, states are correct, and the
// next fold saves it again.
func TestLostPagesCostTimeOnly(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel()
	d := onDisk(t)
	appendAll(t, d.log, "s", 0, logtest.LongSession("s", 2_500))
	look := func() string {
		var all []string
		for n := uint64(100); n <= 2_500; n += 100 { // so that each saved fold is used
			got, err := snapshot.New(d.log, &snapshot.StoreOptions{Folds: d.folds}).At(t.Context(), "s", n)
			require.NoError(t, err)
			all = append(all, marshal(t, got))
		}
		return strings.Join(all, "\n")
	}
	want := look()
	pages, lists := d.subjects(t, ".page."), d.subjects(t, "-")
	require.Greater(t, len(pages), 3)
	require.Greater(t, len(lists), 3)
	cases := [][]string{pages, lists, append(slices.Clone(lists), pages...)}
	for _, page := range pages {
		cases = append(cases, []string{page})
	}
	for _, lost := range cases {
		d.lose(t, lost...)
		for _, f := range verified(t, d.log, d.folds) {
			require.Equal(t, integrity.FoundFoldDamaged, f.code)
		}
		require.Equal(t, want, look())
		require.Subset(t, d.subjects(t, ""), lost)
		require.Empty(t, verified(t, d.log, d.folds))
	}
}

// TestAnErasureOverwritesPages: after an erasure a user's text is in no file.
func TestAnErasureOverwritesPages(t *testing.T) {
	d := onDisk(t)
	const secret = "e3b0c44298fc1c149afbf4c8996fb924"
	entries := append([]eventlog.Entry{userMessage(t, secret)}, logtest.LongSession("s", 2_000)...)
	head := appendAll(t, d.log, "s", 0, entries)
	states := snapshot.New(d.log, &snapshot.StoreOptions{Folds: d.folds})
	_, err := states.At(t.Context(), "s", head)
	require.NoError(t, err)
	require.NotEmpty(t, d.subjects(t, ".page."))
	require.True(t, d.holds(t, secret))
	require.NoError(t, d.folds.Erase(t.Context(), "s"))
	require.Empty(t, d.subjects(t, ""))
	require.False(t, d.holds(t, secret))
}

// holds reports whether any file of the saved folds has a text.
func (d disk) holds(t *testing.T, text string) bool {
	files, err := testkit.Scan(t.Context(), d.dir, text)
	require.NoError(t, err)
	return slices.ContainsFunc(files, func(path string) bool { return strings.Contains(path, "HELIX_SNAP_0") })
}
