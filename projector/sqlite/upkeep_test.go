package sqlite

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// retold is a log whose feed the test controls.
type retold struct {
	*memory.Log
	feeds atomic.Int64
	// tell yields the items to deliver for a record or position, that one included.
	tell func(f eventlog.Change, yield func(eventlog.Change, error) bool) bool
}

func (r *retold) Feed(ctx context.Context, p int, from uint64) iter.Seq2[eventlog.Change, error] {
	r.feeds.Add(1)
	return func(yield func(eventlog.Change, error) bool) {
		for f, err := range r.Log.Feed(ctx, p, from) {
			if err != nil {
				yield(f, err)
				return
			}
			if !r.tell(f, yield) {
				return
			}
		}
	}
}

// A feed that is never idle does not keep the rows from becoming current.
func TestUpkeepHasItsTurnUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("more to read than to tell ", 10_000)
	w.append("before", created("before", "a", ""), said("before", long))
	w.append("gone", created("gone", "a", ""))
	_, err := w.log.Erase(t.Context(), "gone") // so that there is work
	require.NoError(t, err)
	head := w.append("s", created("s", "a", ""), said("s", long))
	m := Open(&retold{Log: w.log, tell: func(f eventlog.Change, yield func(eventlog.Change, error) bool) bool {
		for n := 0; n < 1000 || f.Sequence == head; n++ {
			if !yield(f, nil) {
				return false
			}
		}
		return true
	}}, w.states, w.opts)
	defer m.Close()
	a, err := m.Sessions(t.Context(), readmodel.SessionFilter{})
	require.NoError(t, err)
	require.Equal(t, readmodel.Fresh{Current: true}, a.Fresh)
	require.Equal(t, 2, a.Value.Total)
}

// A record that arrives after a later position is no reason to discard the file.
func TestARecordComesLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.append("s", created("s", "a", ""))
	w.append("gone", created("gone", "a", ""))
	_, err := w.log.Erase(t.Context(), "gone")
	require.NoError(t, err)
	var record eventlog.Change
	log := &retold{Log: w.log, tell: func(f eventlog.Change, yield func(eventlog.Change, error) bool) bool {
		if f.Sequence == first {
			record = f
		}
		return yield(f, nil) && (f.Session != "" || yield(record, nil))
	}}
	m := Open(log, w.states, w.opts)
	defer m.Close()
	for _, id := range []string{"t", "u"} { // the late record is before
		a, err := m.Sessions(t.Context(), readmodel.SessionFilter{})
		require.NoError(t, err)
		require.Equal(t, readmodel.Fresh{Current: true}, a.Fresh)
		w.append(id, created(id, "a", ""))
	}
	require.EqualValues(t, 1, log.feeds.Load())
}

// No other user may read the files.
func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.append("s", created("s", "a", ""))
	w.open()
	require.Equal(t, []string{"s"}, w.ids(readmodel.SessionFilter{}))
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(w.opts.Path + suffix)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
	}
}

// A stuck session is in the rows again once it can be folded, without another record.
func TestStuckSessionsAreTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &broken{States: w.states}
	w.states = b
	w.append("bad", created("bad", "a", ""), said("bad", "hello"))
	w.append("bad-panic", created("bad-panic", "a", ""))
	w.open()
	require.Equal(t, 1, w.search("hello").Total)
	w.close()
	w.append("bad", said("bad", "hello"))
	w.append("bad-panic", said("bad-panic", "hello"))
	w.open()
	require.Equal(t, 1, w.search("hello").Total)
	w.states = b.States
	w.open()
	require.Eventually(t, func() bool { return w.search("hello").Total == 3 }, time.Minute, 10*time.Millisecond)
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
		return w.models.Parked(ctx, readmodel.ParkedFilter{})
	})
	require.Empty(t, page.Items)
}

// lagging is a log whose feed is late.
type lagging struct {
	*jetstream.Log
	waiting chan int
	release chan struct{}
}

func (l *lagging) Feed(ctx context.Context, p int, from uint64) iter.Seq2[eventlog.Change, error] {
	return func(yield func(eventlog.Change, error) bool) {
		l.waiting <- p
		<-l.release
		l.Log.Feed(ctx, p, from)(yield)
	}
}

// Records that a purge removes before the feed delivers them come from the segments, even
// if the session gets no more records.
func TestAPurgeIsFasterThanTheFeed(t *testing.T) {
	t.Parallel()
	n := newNode(t, startServer(t, t.TempDir()), filepath.Join(t.TempDir(), "rows"))
	n.append("s0", created("s0", "a", ""))
	require.Equal(t, []string{"s0"}, n.found())
	n.models.Close()
	log := &lagging{Log: n.log, waiting: make(chan int, 3), release: make(chan struct{})}
	n.models = Open(log, n.states, Options{Path: n.path, Patience: patience})
	for range 3 {
		<-log.waiting // the file has read the log's spans
	}
	want := []string{}
	for i := range 5 {
		id := fmt.Sprint("s", i)
		want = append(want, id)
		if i > 0 {
			n.append(id, created(id, "a", ""))
		}
		n.append(id, said(id, "remarkable"))
	}
	purged, err := n.log.Purge(t.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.NotEmpty(t, purged)
	close(log.release)
	require.Equal(t, want, n.found())
	require.Equal(t, 5, n.hits("remarkable"))
}

// erasing are states that have a function called before a session is folded for the first time,
// which then can't be read.
type erasing struct {
	States
	by    func(session string)
	known map[string]bool
}

func (e *erasing) Head(ctx context.Context, session string) (*projector.Tree, error) {
	if !e.known[session] {
		e.known[session] = true
		e.by(session)
		return nil, eventlog.ErrDamaged
	}
	return e.States.Head(ctx, session)
}

// Sessions that can't be folded are erased, and their ids used again, before that is written:
// the next sessions are not listed as stuck.
func TestAStuckSessionIsErasedAtOnce(t *testing.T) {
	t.Parallel()
	const sessions = 20 // in which the next session is nearly always found in time
	w := newWorld(t)
	for i := range sessions {
		w.append(fmt.Sprint("s", i), created(fmt.Sprint("s", i), "a", ""))
	}
	w.open()
	require.Len(t, w.ids(readmodel.SessionFilter{}), sessions)
	w.close()
	for i := range sessions {
		w.append(fmt.Sprint("s", i), said(fmt.Sprint("s", i), "old"))
	}
	w.states = &erasing{States: w.states, known: map[string]bool{}, by: func(session string) {
		_, err := w.log.Erase(t.Context(), session)
		require.NoError(t, err)
		w.append(session, created(session, "b", ""), said(session, "new"))
	}}
	w.open()
	require.Eventually(t, func() bool { return w.search("new").Total == sessions }, time.Minute, 10*time.Millisecond)
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
		return w.models.Parked(ctx, readmodel.ParkedFilter{})
	})
	require.Empty(t, page.Items)
}
