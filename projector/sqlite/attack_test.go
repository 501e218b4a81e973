package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

func TestAnUnusableFileIsBuiltAgain(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, w *world){
		"removed":   func(t *testing.T, w *world) { require.NoError(t, removeFile(w.opts.Path)) },
		"cut short": func(t *testing.T, w *world) { require.NoError(t, os.Truncate(w.opts.Path, 5000)) },
		"no database": func(t *testing.T, w *world) {
			require.NoError(t, os.WriteFile(w.opts.Path, bytes.Repeat([]byte("no"), 9999), 0o600))
		},
		"damaged": func(t *testing.T, w *world) {
			f, err := os.OpenFile(w.opts.Path, os.O_WRONLY, 0)
			require.NoError(t, err)
			defer f.Close()
			_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, 40<<10), 4096)
			require.NoError(t, err)
		},
		"of another version": func(t *testing.T, w *world) {
			f, err := openFile(w.opts.Path)
			require.NoError(t, err)
			defer f.close()
			_, err = f.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", version-1))
			require.NoError(t, err)
		},
		"without a table": func(t *testing.T, w *world) {
			f, err := openFile(w.opts.Path)
			require.NoError(t, err)
			defer f.close()
			_, err = f.conn.ExecContext(t.Context(), "DROP TABLE runs; DROP TABLE sessions")
			require.NoError(t, err)
		},
		"ahead of its log": func(t *testing.T, w *world) {
			f, err := openFile(w.opts.Path)
			require.NoError(t, err)
			defer f.close()
			_, err = f.conn.ExecContext(t.Context(), "UPDATE positions SET position = position + 100; UPDATE trees SET head = head + 100")
			require.NoError(t, err)
		},
		"with another record at its position": func(t *testing.T, w *world) {
			f, err := openFile(w.opts.Path)
			require.NoError(t, err)
			defer f.close()
			_, err = f.conn.ExecContext(t.Context(), "UPDATE positions SET digest = 'another'; UPDATE sessions SET doc = '{}'")
			require.NoError(t, err)
		},
		"of another log": func(t *testing.T, w *world) {
			f, err := openFile(w.opts.Path)
			require.NoError(t, err)
			defer f.close()
			_, err = f.conn.ExecContext(t.Context(), "UPDATE meta SET value = 'another'; UPDATE sessions SET doc = '{}'")
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := []string{}
			for i := range 50 {
				want = append(want, fmt.Sprintf("s%02d", i))
				w.append(want[i], created(want[i], "a", ""), said(want[i], "hello"))
			}
			w.open()
			require.Equal(t, want, w.ids(readmodel.SessionFilter{}))
			w.close()
			harm(t, w)
			w.open()
			require.Eventually(t, func() bool { // damage that is not noticed at once is noticed by the first query
				_, err := w.models.Sessions(t.Context(), readmodel.SessionFilter{})
				return err == nil
			}, time.Minute, time.Millisecond)
			require.Equal(t, want, w.ids(readmodel.SessionFilter{}))
			require.Equal(t, 50, w.search("hello").Total)
		})
	}
}

// A file that is removed, or damaged, while a node runs is built again.
func TestAFileIsDamagedWhileTheNodeRuns(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, w *world){
		"removed": func(t *testing.T, w *world) { require.NoError(t, removeFile(w.opts.Path)) },
		"replaced": func(t *testing.T, w *world) {
			require.NoError(t, removeFile(w.opts.Path))
			require.NoError(t, os.WriteFile(w.opts.Path, []byte("something else"), 0o600))
		},
		"with its folder": func(t *testing.T, w *world) {
			require.NoError(t, os.RemoveAll(w.opts.Path[:strings.LastIndexByte(w.opts.Path, '/')]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.append("before", created("before", "a", ""))
			w.open()
			require.Equal(t, []string{"before"}, w.ids(readmodel.SessionFilter{}))
			harm(t, w)
			w.append("after", created("after", "a", ""))
			require.Eventually(t, func() bool {
				_, err := os.Stat(w.opts.Path)
				a, aerr := w.models.Sessions(t.Context(), readmodel.SessionFilter{})
				return err == nil && aerr == nil && a.Fresh.Current && a.Value.Total == 2
			}, time.Minute, 10*time.Millisecond)
			w.open()
			require.Equal(t, []string{"after", "before"}, w.ids(readmodel.SessionFilter{}), "it is all in the new file")
		})
	}
}

// An erased session leaves no byte in any file, even if there are readers meanwhile.
func TestErasureRemovesTheBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const secret = "unmistakable"
	sessions, messages := 20, 20
	if testkit.Raced {
		sessions, messages = 3, 5
	}
	for i := range sessions {
		id := fmt.Sprint("s", i)
		w.append(id, created(id, "a", "user-"+secret, "tag-"+secret))
		for n := range messages {
			w.append(id, said(id, fmt.Sprintf("%s word%d %s", secret, n, strings.Repeat("other words ", 20))))
		}
		w.append(id, eventlog.Entry{Envelope: eventlog.Envelope{Kind: "fact", Type: secret, Agent: id}, Payload: []byte("{")})
	}
	w.append("kept", created("kept", "a", ""), said("kept", "other words"))
	w.open()
	require.Equal(t, sessions*messages, w.search(secret).Total)
	require.True(t, inFiles(t, w, secret))
	w.open()
	for i := range sessions {
		_, err := w.log.Erase(t.Context(), fmt.Sprint("s", i))
		require.NoError(t, err)
	}
	require.Equal(t, 0, w.search(secret).Total)
	require.Equal(t, 1, w.search("other words").Total)
	require.Eventually(t, func() bool { return !inFiles(t, w, secret) }, time.Minute, 10*time.Millisecond)
	w.close()
	require.False(t, inFiles(t, w, secret))
}

// inFiles reports whether any file of the read models has a text.
func inFiles(t *testing.T, w *world, text string) bool {
	t.Helper()
	folder := w.opts.Path[:strings.LastIndexByte(w.opts.Path, '/')]
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		content, err := os.ReadFile(folder + "/" + e.Name())
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		if bytes.Contains(content, []byte(text)) {
			return true
		}
	}
	return false
}

// broken can't fold some sessions.
type broken struct {
	States
	calls atomic.Int64
}

func (b *broken) Head(ctx context.Context, session string) (*projector.Tree, error) {
	if strings.HasPrefix(session, "bad") {
		b.calls.Add(1)
		if session == "bad-panic" {
			panic("at the bottom")
		}
		return nil, fmt.Errorf("%w: a payload is gone", eventlog.ErrDamaged)
	}
	return b.States.Head(ctx, session)
}

// A session that can't be folded is listed, and does not block others.
func TestPoisonIsParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &broken{States: w.states}
	w.states = b
	poison := eventlog.Entry{Envelope: eventlog.Envelope{Kind: "chunk", Type: "text_delta", Agent: "odd"}, Payload: []byte("{")}
	w.append("odd", created("odd", "a", ""))
	at := w.append("odd", poison)
	w.append("odd", said("odd", "hello"))
	w.append("bad", created("bad", "a", ""), said("bad", "hello"))
	w.append("bad-panic", created("bad-panic", "a", ""))
	w.append("good", created("good", "a", ""), said("good", "hello"))
	w.open()
	require.Equal(t, 3, w.search("hello").Total)

	w.close()
	w.opts.MaxFolds = 1 // so that they have to be folded again
	bad, worse := w.append("bad", said("bad", "again")), w.append("bad-panic", said("bad-panic", "again"))
	w.append("good", said("good", "again"))
	w.open()
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
		return w.models.Parked(ctx, readmodel.ParkedFilter{})
	})
	require.Len(t, page.Items, 3)
	require.Equal(t, readmodel.Parked{
		SessionID: "bad", Sequence: bad, Type: "user_message", Reason: "eventlog: damaged: a payload is gone", Stuck: true,
	}, page.Items[0])
	require.Equal(t, "the fold panics: at the bottom", page.Items[1].Reason)
	require.Equal(t, worse, page.Items[1].Sequence)
	require.Equal(t, "odd", page.Items[2].SessionID)
	require.Equal(t, at, page.Items[2].Sequence)
	require.False(t, page.Items[2].Stuck)
	require.Equal(t, 1, w.search("again").Total, "the others continue")
	require.Equal(t, 3, w.search("hello").Total, "and what was there stays")

	w.states = b.States
	w.close()
	w.open()
	w.append("bad", said("bad", "again"))
	require.Eventually(t, func() bool { return w.search("again").Total == 4 }, time.Minute, 10*time.Millisecond, "a session that can be folded again is in")
}

func TestTwoProcessesDontShareAFile(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""))
	w.open()
	require.Equal(t, 1, w.sessions(readmodel.SessionFilter{}).Total)
	o := w.opts
	o.Patience = time.Millisecond
	second := Open(w.log, w.states, o)
	defer second.Close()
	require.Eventually(t, func() bool {
		_, err := second.Sessions(t.Context(), readmodel.SessionFilter{})
		return errors.Is(err, readmodel.ErrUnavailable) && second.Fresh(t.Context()).Problem == errInUse.Error()
	}, time.Minute, time.Millisecond)
	w.close()
	require.Eventually(t, func() bool {
		a, err := second.Sessions(t.Context(), readmodel.SessionFilter{})
		return err == nil && a.Fresh.Current && a.Value.Total == 1
	}, time.Minute, time.Millisecond)
}

// away is a log that does not answer.
type away struct {
	*memory.Log
	gone atomic.Bool
}

func (a *away) Spans(ctx context.Context) ([]eventlog.Span, error) {
	if a.gone.Load() {
		return nil, eventlog.ErrUnavailable
	}
	return a.Log.Spans(ctx)
}

// While the log can't be read, queries are answered from the rows, and the answers are
// not called current.
func TestTheLogIsAway(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""))
	log := &away{Log: w.log}
	m := Open(log, w.states, w.opts)
	defer m.Close()
	a, err := m.Sessions(t.Context(), readmodel.SessionFilter{})
	require.NoError(t, err)
	require.Equal(t, readmodel.Fresh{Current: true}, a.Fresh)
	log.gone.Store(true)
	a, err = m.Sessions(t.Context(), readmodel.SessionFilter{})
	require.NoError(t, err)
	require.Equal(t, 1, a.Value.Total)
	require.Equal(t, readmodel.Fresh{Problem: eventlog.ErrUnavailable.Error()}, a.Fresh)
}

// late is a log whose records come only when they are let through.
type late struct {
	*memory.Log
	goOn chan struct{}
}

func (l *late) Feed(ctx context.Context, p int, from uint64) iter.Seq2[eventlog.Change, error] {
	return func(yield func(eventlog.Change, error) bool) {
		select {
		case <-l.goOn:
			l.Log.Feed(ctx, p, from)(yield)
		case <-ctx.Done():
		}
	}
}

// Rows that go beyond the end of their log are never called current, not even before the
// log has said that it has no such records.
func TestRowsAheadOfTheirLogAreNotCurrent(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""))
	w.open()
	require.Equal(t, []string{"s"}, w.ids(readmodel.SessionFilter{}))
	w.close()
	f, err := openFile(w.opts.Path)
	require.NoError(t, err)
	_, err = f.conn.ExecContext(t.Context(), "UPDATE positions SET position = position + 2; UPDATE trees SET head = head + 2")
	require.NoError(t, err)
	f.close()

	log := &late{w.log, make(chan struct{})}
	w.models = Open(log, w.states, w.opts)
	m := w.models
	require.Eventually(t, func() bool { // nothing but the log's word is missing
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.state.positions != nil && !m.state.rebuilding
	}, time.Minute, time.Millisecond)
	for range 3 { // each tidies before it answers
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		require.False(t, m.await(ctx).Current)
		cancel()
	}
	close(log.goOn)
	require.Eventually(t, func() bool {
		a, err := m.Sessions(t.Context(), readmodel.SessionFilter{})
		return err == nil && a.Fresh.Current && a.Value.Total == 1
	}, time.Minute, time.Millisecond)
}

// damaged is a log of which only segments have the records, with a session whose last
// segment is damaged.
type damaged struct{ *sealed }

func (d damaged) Head(ctx context.Context, session string) (uint64, error) {
	if session == "bad" {
		return 0, eventlog.ErrDamaged
	}
	return d.sealed.Head(ctx, session)
}

// A damaged session is listed as stuck also when all rows are rebuilt from segments.
func TestADamagedSessionIsStuckAfterARebuild(t *testing.T) {
	w := newWorld(t)
	w.append("bad", created("bad", "a", ""))
	w.append("good", created("good", "a", ""))
	w.models = Open(damaged{&sealed{w.log, 1 << 20}}, &broken{States: w.states}, w.opts)
	require.Equal(t, []string{"good"}, w.ids(readmodel.SessionFilter{}))
	page := asked(t, func(ctx context.Context) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
		return w.models.Parked(ctx, readmodel.ParkedFilter{})
	})
	require.Len(t, page.Items, 1)
	require.Equal(t, "bad", page.Items[0].SessionID)
	require.True(t, page.Items[0].Stuck)
}

// A query ends when its time is over, whatever SQLite is doing for it: others wait for the
// connection.
func TestAQueryEndsWithItsTime(t *testing.T) {
	w := newWorld(t)
	w.open()
	require.Zero(t, w.sessions(readmodel.SessionFilter{}).Total)
	const long = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) SELECT count(*) FROM n"
	_, err := lookBy(t.Context(), w.models, func(f *file) *sql.DB { return f.find }, 50*time.Millisecond, func(ctx context.Context, tx *sql.Tx) (n int, err error) {
		return n, tx.QueryRowContext(ctx, long).Scan(&n)
	})
	require.ErrorIs(t, err, readmodel.ErrUnavailable)
	require.ErrorIs(t, err, errTooLong)
}

// A search that is short of time leaves out the oldest texts.
func TestASearchThatIsShortOfTimeLeavesOutOldTexts(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""), said("s", "old apple"), said("s", "new apple"))
	w.open()
	require.Equal(t, 2, w.search("apple").Total)
	_, err := look(t.Context(), w.models, func(ctx context.Context, tx *sql.Tx) (none struct{}, err error) {
		texts, err := textsOf(ctx, tx, `["s"]`, readmodel.SearchQuery{})
		require.NoError(t, err)
		all, err := rank(ctx, tx, texts, []string{"apple"}, halftime(ctx))
		require.NoError(t, err)
		require.Len(t, all, 2)
		some, err := rank(ctx, tx, texts, []string{"apple"}, time.Now())
		require.NoError(t, err)
		require.Len(t, some, 1)
		require.Equal(t, texts[0].id, some[0].id)
		return none, nil
	})
	require.NoError(t, err)
}

// A full disk stops updates of the rows, but not answers. Updates resume without
// intervention.
func TestADiskThatIsFull(t *testing.T) {
	w := newWorld(t)
	w.append("s", created("s", "a", ""))
	w.open()
	require.Equal(t, 1, w.sessions(readmodel.SessionFilter{}).Total)
	limit := func(pages int) {
		_, err := w.models.file.conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages))
		require.NoError(t, err)
	}
	limit(1) // no pages beyond the present ones
	w.append("s", said("s", "remarkable "+strings.Repeat("and so on ", 20_000)))
	w.append("t", created("t", "a", ""))
	require.Eventually(t, func() bool { return w.models.Fresh(t.Context()).Problem != "" }, time.Minute, time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	fresh := w.models.await(ctx)
	require.False(t, fresh.Current)
	require.Contains(t, fresh.Problem, "full")
	require.NotZero(t, fresh.Lag)
	_, err := look(t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (n int, err error) {
		err = tx.QueryRow("SELECT count(*) FROM sessions").Scan(&n)
		require.Equal(t, 1, n)
		return n, err
	})
	require.NoError(t, err)
	limit(1 << 30)
	require.Equal(t, 2, w.sessions(readmodel.SessionFilter{}).Total)
	require.Equal(t, 1, w.search("remarkable").Total)
}
