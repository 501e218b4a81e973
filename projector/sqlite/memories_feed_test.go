package sqlite

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// Each node at once finds memories that another node has saved. A file that is built
// again after a purge has the memories that are only in segments.
func TestEveryNodeKnowsAllMemories(t *testing.T) {
	t.Parallel()
	srv := startServer(t, t.TempDir())
	a, b := newNode(t, srv, filepath.Join(t.TempDir(), "a")), newNode(t, srv, filepath.Join(t.TempDir(), "b"))
	s, erased, again := userScope("u"), userScope("erased"), userScope("again")
	for i := range 30 {
		id := fmt.Sprint("m", i)
		a.append(s.LogID(), memorySaved(s, id, fmt.Sprint("remarkable number", i)))
		got := candidatesOf(t, b.models, readmodel.MemoryQuery{Scope: s, Text: fmt.Sprint("number", i)})
		require.Equal(t, []string{id}, idsOf(got.ByWords))
		b.append(s.LogID(), memoryEmbedded(s, id, embedderA, float32(i), 1))
		require.Equal(t, readmodel.EmbeddingComplete, memoriesOf(t, a.models, s)[0].EmbeddingStatus)
	}
	for _, scope := range []eventlog.MemoryScope{erased, again} {
		a.append(scope.LogID(), memorySaved(scope, "m", "remarkable"))
		require.Len(t, memoriesOf(t, b.models, scope), 1)
	}
	b.models.Close()
	for _, scope := range []eventlog.MemoryScope{erased, again} {
		_, err := a.log.Erase(t.Context(), scope.LogID())
		require.NoError(t, err)
	}
	for i := range 3 {
		a.append(again.LogID(), memorySaved(again, "m", fmt.Sprint("unremarkable ", i)))
	}
	a.append(s.LogID(), memoryForgotten(s, "m3"))
	purged, err := a.log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.NotEmpty(t, purged)
	a.append(s.LogID(), memorySaved(s, "last", "remarkable"))
	want := memoriesOf(t, a.models, s)
	require.Len(t, want, 30)
	b.open() // after the purge
	require.Equal(t, want, memoriesOf(t, b.models, s))
	require.Empty(t, memoriesOf(t, b.models, erased))
	require.Equal(t, "unremarkable 0", memoriesOf(t, b.models, again)[0].Content)
	require.Empty(t, candidatesOf(t, b.models, readmodel.MemoryQuery{Scope: again, Text: "remarkable"}).ByWords)
	b.models.Close()
	b.path = filepath.Join(t.TempDir(), "from nothing")
	b.open()
	require.Equal(t, want, memoriesOf(t, b.models, s))
}

// unreadable is a log whose memories can't be read while it is broken.
type unreadable struct {
	*memory.Log
	broken atomic.Bool
}

func (u *unreadable) Feed(ctx context.Context, p int, from uint64) iter.Seq2[eventlog.Change, error] {
	return func(yield func(eventlog.Change, error) bool) {
		for f, err := range u.Log.Feed(ctx, p, from) {
			if eventlog.IsMemoryLog(f.Session) {
				f.Err = eventlog.ErrDamaged
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

func (u *unreadable) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	if u.broken.Load() && eventlog.IsMemoryLog(session) {
		return func(yield func(eventlog.Record, error) bool) { yield(eventlog.Record{}, eventlog.ErrDamaged) }
	}
	return u.Log.Read(ctx, session, from, to)
}

// A scope that can't be read is listed, and does not block others; once it can be read,
// it is in the rows again.
func TestAScopeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := userScope("u")
	log := &unreadable{Log: w.log}
	log.broken.Store(true)
	at := w.append(s.LogID(), memorySaved(s, "m", "remarkable"))
	w.append("s", created("s", "a", ""))
	parked := func() []readmodel.Parked {
		return asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
			return w.models.Parked(ctx, readmodel.ParkedFilter{})
		}).Items
	}
	w.models = Open(log, w.states, w.opts)
	require.Equal(t, []string{"s"}, w.ids(readmodel.SessionFilter{}))
	require.Empty(t, w.memories(s))
	require.Equal(t, []readmodel.Parked{{
		SessionID: s.LogID(), Sequence: at, Type: "memory_saved", Reason: eventlog.ErrDamaged.Error(), Stuck: true,
	}}, parked())
	w.close()
	log.broken.Store(false)
	w.models = Open(log, w.states, w.opts)
	require.Eventually(t, func() bool { return len(w.memories(s)) == 1 }, time.Minute, 10*time.Millisecond)
	require.Empty(t, parked())
	w.append(s.LogID(), memorySaved(s, "n", "remarkable"))
	require.Len(t, w.memories(s), 2)
}

// sealed is a log whose records are all in segments, and whose reads fail after a number
// of records.
type sealed struct {
	*memory.Log
	most int
}

func (l *sealed) Spans(ctx context.Context) ([]eventlog.Span, error) {
	spans, err := l.Log.Spans(ctx)
	for i := range spans {
		spans[i].First = spans[i].Last + 1
	}
	return spans, err
}

func (l *sealed) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		n := 0
		for r, err := range l.Log.Read(ctx, session, from, to) {
			if n++; n > l.most {
				r, err = eventlog.Record{}, eventlog.ErrUnavailable
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// If reading a large scope is interrupted, the part that was read is kept.
func TestALargeScopeIsReadInParts(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	w := newWorld(t)
	s := userScope("u")
	var entries []eventlog.Entry
	for i := range 2*scopeBatch + 10 {
		entries = append(entries, memorySaved(s, fmt.Sprint("m", i), "word"))
	}
	for batch := range slices.Chunk(entries, 500) {
		w.append(s.LogID(), batch...)
	}
	w.models = Open(&sealed{w.log, scopeBatch + 5}, w.states, w.opts)
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.MemoryPage], error) {
		return w.models.ListMemories(ctx, s, embedderA, readmodel.Paging{})
	})
	require.Equal(t, len(entries), page.Total)
	head, err := w.log.Head(t.Context(), s.LogID())
	require.NoError(t, err)
	require.Equal(t, head, page.Head)
	requireSound(w)
}
