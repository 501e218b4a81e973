package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
	foldsmemory "github.com/helixd/helixd/snapshot/memory"
)

// onServer returns a log on a server, and its saved folds.
func onServer(t *testing.T) (*nats.Conn, *jetstream.Log, *foldsjs.Folds) {
	t.Helper()
	srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	log := jetstreamtest.Open(t, nc, &jetstream.Options{Server: srv})
	folds, err := foldsjs.Open(t.Context(), nc, layout.Hashed(1), 1)
	require.NoError(t, err)
	return nc, log, folds
}

// TestAStateOutlivesItsHistory: records that retention has dropped can't be read any
// more; the states from the floor on are unchanged.
func TestAStateOutlivesItsHistory(t *testing.T) {
	_, log, folds := onServer(t)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 50})

	head := uint64(0)
	for _, r := range aRun(t) {
		var err error
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{r.Entry})
		require.NoError(t, err)
	}
	require.NoError(t, log.Seal(t.Context(), "s"))
	half := head
	for i := range 20 {
		e, err := eventlog.NewFact("s", &fact.UserMessage{
			Content: fmt.Sprint(i), Base: fact.Base{SessionID: "s", Timestamp: int64(i)},
		}, eventlog.Labels{})
		require.NoError(t, err)
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{e})
		require.NoError(t, err)
		require.NoError(t, log.Seal(t.Context(), "s"))
	}
	want := map[uint64]string{}
	for n := uint64(1); n <= head; n++ {
		tree, err := store.At(t.Context(), "s", n)
		require.NoError(t, err)
		want[n] = marshal(t, tree)
	}

	none, err := store.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.Empty(t, none.Dropped, "the log still has it")
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := store.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	floor := done.Dropped["s"]
	require.Greater(t, floor, half)
	require.Less(t, floor, head)

	for n := uint64(1); n <= head; n++ {
		tree, err := store.At(t.Context(), "s", n)
		if n <= floor {
			var trimmed *eventlog.TrimmedError
			if err != nil { // a fold may have been saved there
				require.ErrorAs(t, err, &trimmed)
				require.Equal(t, floor, trimmed.Floor)
				continue
			}
		}
		require.NoError(t, err)
		require.JSONEq(t, want[n], marshal(t, tree))
	}
	tree, err := store.Head(t.Context(), "s")
	require.NoError(t, err)
	require.JSONEq(t, want[head], marshal(t, tree))

	again, err := store.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.Empty(t, again.Dropped)

	e, err := store.Erase(t.Context(), "s")
	require.NoError(t, err)
	require.False(t, e.Pending)
	saved, err := folds.Nearest(t.Context(), "s", head, snapshot.JSON, snapshot.Packed)
	require.NoError(t, err)
	require.Nil(t, saved)
}

// upgraded returns a log and its saved folds after a rolling upgrade: a node of the new
// version has saved a state, and then one of the earlier version has dropped the records
// up to after it. It also returns the state at the head.
func upgraded(t *testing.T) (*jetstream.Log, *foldsjs.Folds, string) {
	t.Helper()
	_, log, folds := onServer(t)
	const segments = 5
	head := uint64(0)
	for i := range 2 * segments {
		var err error
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{userMessage(t, fmt.Sprint(i))})
		require.NoError(t, err)
		if i < segments {
			require.NoError(t, log.Seal(t.Context(), "s"))
		}
	}
	_, err := snapshot.New(log, &snapshot.StoreOptions{Folds: folds, SaveEvery: 1}).At(t.Context(), "s", 2)
	require.NoError(t, err)
	packed, err := folds.Sequences(t.Context(), "s", snapshot.Packed)
	require.NoError(t, err)
	require.Equal(t, []uint64{2}, packed)

	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	tree, err := store.Head(t.Context(), "s")
	require.NoError(t, err)
	_, err = log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := store.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.Greater(t, done.Dropped["s"], packed[0])
	saved, err := folds.Nearest(t.Context(), "s", head, snapshot.JSON)
	require.NoError(t, err)
	saved.Version--
	_, err = folds.Save(t.Context(), "s", *saved)
	require.NoError(t, err)
	return log, folds, marshal(t, tree)
}

// TestATrimmedSessionOutlivesAnUpgrade: if only another version's fold has the state of the
// records that were dropped, each version continues it, and not again for each read.
func TestATrimmedSessionOutlivesAnUpgrade(t *testing.T) {
	log, folds, want := upgraded(t)
	counted := &counting{Log: log}
	store := snapshot.New(counted, &snapshot.StoreOptions{Folds: folds})
	tree, err := store.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, want, marshal(t, tree))

	_, err = snapshot.New(log, &snapshot.StoreOptions{Folds: broken{}}).Head(t.Context(), "s")
	require.ErrorIs(t, err, errGone, "the state is not lost")
	tree, err = snapshot.New(log, &snapshot.StoreOptions{Folds: unreadPacked{folds}}).Head(t.Context(), "s")
	require.NoError(t, err, "a fold in JSON has it")
	require.Equal(t, want, marshal(t, tree))

	counted.read = 0
	tree, err = store.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, want, marshal(t, tree))
	require.Equal(t, 1, counted.read)
}

// unreadPacked is a store of folds whose packed ones can't be read.
type unreadPacked struct{ *foldsjs.Folds }

func (f unreadPacked) Nearest(ctx context.Context, session string, n uint64, forms ...snapshot.Form) (*snapshot.Saved, error) {
	if slices.Contains(forms, snapshot.Packed) {
		return nil, errGone
	}
	return f.Folds.Nearest(ctx, session, n, forms...)
}

// noSave is a store of folds in which each saving of one in JSON breaks off: it removes
// what it would replace, and then fails.
type noSave struct{ *foldsjs.Folds }

func (f noSave) Save(ctx context.Context, session string, s snapshot.Saved) (int, error) {
	if s.Form != snapshot.JSON {
		return f.Folds.Save(ctx, session, s)
	}
	return 0, errors.Join(f.Erase(ctx, session), errors.New("the node dies here"))
}

// leftovers is a log in which a trim was interrupted, or another one is under way: it
// still has segments below the floor.
type leftovers struct{ *jetstream.Log }

func (l leftovers) Trimmable(ctx context.Context, session string, upTo uint64) (uint64, bool, error) {
	floor, _, err := l.Log.Trimmable(ctx, session, upTo)
	return floor, true, err
}

func (l leftovers) Droppable(context.Context, time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("s", nil) }
}

// TestASecondPassKeepsTheStateOfTheFirst: the saved fold is all that is left of records
// that were dropped, so that a second pass which is interrupted must not lose it.
func TestASecondPassKeepsTheStateOfTheFirst(t *testing.T) {
	_, log, folds := onServer(t)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	head := uint64(0)
	for i := range 5 {
		e, err := eventlog.NewFact("s", &fact.UserMessage{Content: fmt.Sprint(i), Base: fact.Base{SessionID: "s"}}, eventlog.Labels{})
		require.NoError(t, err)
		head, err = log.Append(t.Context(), "s", head, []eventlog.Entry{e})
		require.NoError(t, err)
		require.NoError(t, log.Seal(t.Context(), "s"))
	}
	_, err := log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := store.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.NotZero(t, done.Dropped["s"])

	second := snapshot.New(leftovers{log}, &snapshot.StoreOptions{Folds: noSave{folds}})
	_, err = second.Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	tree, err := snapshot.New(log, &snapshot.StoreOptions{Folds: folds}).Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head, tree.Head)
}

// TestRetainBySize: the oldest segments are dropped first, until the bound is met;
// segments that must be kept are kept.
func TestRetainBySize(t *testing.T) {
	_, log, folds := onServer(t)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	const sessions, segments = 4, 8
	heads := map[string]uint64{}
	for i := range sessions { // sequentially, so that the first are the oldest
		session := fmt.Sprint("s", i)
		for range segments {
			e, err := eventlog.NewFact(session, &fact.UserMessage{
				Content: strings.Repeat(fmt.Sprint(rand.Uint64()), 500), Base: fact.Base{SessionID: session, Timestamp: 1},
			}, eventlog.Labels{})
			require.NoError(t, err)
			heads[session], err = log.Append(t.Context(), session, heads[session], []eventlog.Entry{e})
			require.NoError(t, err)
			require.NoError(t, log.Seal(t.Context(), session))
		}
	}
	_, err := log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	full, err := log.Size(t.Context())
	require.NoError(t, err)

	done, err := store.Retain(t.Context(), snapshot.Retention{MaxBytes: full})
	require.NoError(t, err)
	require.Empty(t, done.Dropped, "it fits")
	require.Equal(t, full, done.Bytes)

	done, err = store.Retain(t.Context(), snapshot.Retention{MaxBytes: full * 3 / 4})
	require.NoError(t, err)
	require.LessOrEqual(t, done.Bytes, full*3/4)
	require.Contains(t, done.Dropped, "s0", "the oldest")

	done, err = store.Retain(t.Context(), snapshot.Retention{MaxBytes: 1})
	require.NoError(t, err, "more can't go: each session keeps its last segment, and its state")
	require.Greater(t, done.Bytes, uint64(1))
	for session, head := range heads {
		tree, err := store.Head(t.Context(), session)
		require.NoError(t, err)
		require.Len(t, tree.Messages, segments)
		require.Equal(t, head, tree.Head)
	}
	again, err := store.Retain(t.Context(), snapshot.Retention{MaxBytes: 1})
	require.NoError(t, err)
	require.Empty(t, again.Dropped)
}

// TestRetentionSkipsYoungSessions: a pass without anything to drop costs the same however
// many sessions there are.
func TestRetentionSkipsYoungSessions(t *testing.T) {
	nc, log, folds := onServer(t)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	seal := func(session string, segments int) {
		head := uint64(0)
		for range segments {
			e, err := eventlog.NewFact(session, &fact.UserMessage{
				Content: "m", Base: fact.Base{SessionID: session, Timestamp: 1},
			}, eventlog.Labels{})
			require.NoError(t, err)
			head, err = log.Append(t.Context(), session, head, []eventlog.Entry{e})
			require.NoError(t, err)
			require.NoError(t, log.Seal(t.Context(), session))
		}
	}
	asked := func(r snapshot.Retention) uint64 {
		before := nc.Stats().OutMsgs
		_, err := store.Retain(t.Context(), r)
		require.NoError(t, err)
		return nc.Stats().OutMsgs - before
	}
	young := func() uint64 { // the least of three: the log itself asks now and then
		r := snapshot.Retention{Drop: true, DropOlderThan: time.Hour}
		return min(asked(r), asked(r), asked(r))
	}
	seal("first", 2)
	few := young()
	for i := range 50 {
		seal(fmt.Sprint("young", i), 2)
	}
	require.Equal(t, few, young())
	for i := range 50 {
		seal(fmt.Sprint("single", i), 1)
	}
	require.Less(t, asked(snapshot.Retention{Drop: true}), 51*uint64(20), "whose only segment is old has nothing to drop either")
	require.Equal(t, few, young())
}

// TestMemoriesAreNoHistory: memories are never dropped, however old they are and however
// full the log.
func TestMemoriesAreNoHistory(t *testing.T) {
	_, log, folds := onServer(t)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
	scope := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "u"}.LogID()
	head := uint64(0)
	for i := range 5 {
		e, err := eventlog.NewFact(scope, &fact.MemorySaved{
			MemoryID: fmt.Sprint("m", i), Content: "likes tea", Base: fact.Base{SessionID: scope, Timestamp: 1},
		}, eventlog.Labels{})
		require.NoError(t, err)
		head, err = log.Append(t.Context(), scope, head, []eventlog.Entry{e})
		require.NoError(t, err)
		require.NoError(t, log.Seal(t.Context(), scope))
	}
	_, err := log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	done, err := store.Retain(t.Context(), snapshot.Retention{Drop: true, MaxBytes: 1})
	require.NoError(t, err)
	require.Empty(t, done.Dropped)
	n := 0
	for _, err := range log.Read(t.Context(), scope, 0, 0) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 5, n)
}

// aged is a log in memory that is also its archive: each record is a segment of one byte,
// of the day of its timestamp.
type aged struct {
	*memory.Log
	segments map[string][]eventlog.Record
}

func (a *aged) append(t *testing.T, session string, daysAgo int, f fact.Fact) {
	t.Helper()
	e, err := eventlog.NewFact(session, f, eventlog.Labels{})
	require.NoError(t, err)
	head, err := a.Head(t.Context(), session)
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	head, err = a.Append(t.Context(), session, head, []eventlog.Entry{e})
	require.NoError(t, err)
	a.segments[session] = append(a.segments[session], eventlog.Record{Sequence: head, Time: time.Now().AddDate(0, 0, -daysAgo)})
}

func (a *aged) Purge(context.Context, eventlog.PurgeOptions) ([]eventlog.Purged, error) {
	return nil, nil
}

func (a *aged) Droppable(context.Context, time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for session, segments := range a.segments {
			if len(segments) > 1 && !yield(session, nil) {
				return
			}
		}
	}
}

func (a *aged) SealedBefore(_ context.Context, session string, t time.Time) (last uint64, err error) {
	for _, s := range a.segments[session] {
		if s.Time.Before(t) {
			last = s.Sequence
		}
	}
	return last, nil
}

func (a *aged) Trimmable(_ context.Context, session string, upTo uint64) (uint64, bool, error) {
	return 0, len(a.segments[session]) > 1 && a.segments[session][0].Sequence <= upTo, nil
}

func (a *aged) OldestSegment(_ context.Context, session string) (time.Time, error) {
	return a.segments[session][0].Time, nil
}

func (a *aged) Size(context.Context) (size uint64, _ error) {
	for _, segments := range a.segments {
		size += uint64(len(segments))
	}
	return size, nil
}

func (a *aged) Trim(_ context.Context, session string, upTo uint64) (floor uint64, _ error) {
	for segments := a.segments[session]; len(segments) > 1 && segments[0].Sequence <= upTo; segments = segments[1:] {
		floor, a.segments[session] = segments[0].Sequence, segments[1:]
	}
	return floor, nil
}

// TestMemoriesDoNotCountForTheAgeOfHistory: however old the segments are that must be
// kept, of the others only the oldest are dropped to reduce the size.
func TestMemoriesDoNotCountForTheAgeOfHistory(t *testing.T) {
	log := &aged{Log: memory.New(), segments: map[string][]eventlog.Record{}}
	const year, days, sessions = 365, 16, 4
	memories := eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "u"}.LogID()
	for i := range 3 {
		log.append(t, memories, year, &fact.MemorySaved{
			MemoryID: fmt.Sprint("m", i), Content: "likes tea", Base: fact.Base{SessionID: memories, Timestamp: 1},
		})
	}
	hello := func(session string) fact.Fact {
		return &fact.UserMessage{Content: "hello", Base: fact.Base{SessionID: session, Timestamp: 1}}
	}
	log.append(t, "idle", year, hello("idle"))
	for day := days; day > 0; day-- {
		for i := range sessions {
			session := fmt.Sprint("s", i)
			log.append(t, session, day, hello(session))
		}
	}
	full, err := log.Size(t.Context())
	require.NoError(t, err)
	store := snapshot.New(log, &snapshot.StoreOptions{Folds: new(foldsmemory.Folds)})
	done, err := store.Retain(t.Context(), snapshot.Retention{MaxBytes: full - 2*sessions})
	require.NoError(t, err)
	require.LessOrEqual(t, done.Bytes, full-2*sessions)
	require.Len(t, done.Dropped, sessions)
	for i := range sessions {
		require.GreaterOrEqual(t, len(log.segments[fmt.Sprint("s", i)]), days-4)
	}
	require.Len(t, log.segments[memories], 3)
}

// noParts is a store of folds that has lost parts of those in JSON.
type noParts struct{ *foldsmemory.Folds }

func (f noParts) Nearest(ctx context.Context, session string, n uint64, forms ...snapshot.Form) (*snapshot.Saved, error) {
	s, err := f.Folds.Nearest(ctx, session, n, forms...)
	if s == nil || s.Form != snapshot.JSON {
		return s, err
	}
	without := *s
	without.State = nil
	return &without, err
}

// TestRetentionNeedsAReadableState: records whose state can't be read from the saved fold stay.
func TestRetentionNeedsAReadableState(t *testing.T) {
	log := &aged{Log: memory.New(), segments: map[string][]eventlog.Record{}}
	for range 3 {
		log.append(t, "s", 1, &fact.UserMessage{Content: "hello", Base: fact.Base{SessionID: "s", Timestamp: 1}})
	}
	saved := new(foldsmemory.Folds)
	done, err := snapshot.New(log, &snapshot.StoreOptions{Folds: noParts{saved}}).Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.Empty(t, done.Dropped)
	done, err = snapshot.New(log, &snapshot.StoreOptions{Folds: saved}).Retain(t.Context(), snapshot.Retention{Drop: true})
	require.NoError(t, err)
	require.Contains(t, done.Dropped, "s")
}
