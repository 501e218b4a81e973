package logtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
)

func reads(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	first := append1(t, log, "s", 0, "a")
	append1(t, log, "noise", 0, "n")
	second := append1(t, log, "s", first, "b")
	third := append1(t, log, "s", second, "c")

	read := func(from, to uint64) []string { return texts(t, collect(t, log.Read(ctx, "s", from, to))) }
	require.Equal(t, []string{"a", "b", "c"}, read(0, 0))
	require.Equal(t, []string{"b", "c"}, read(first, 0))
	require.Equal(t, []string{"b"}, read(first, second))
	require.Equal(t, []string{"a"}, read(0, first+1), "a bound between two records")
	require.Equal(t, []string{"b", "c"}, read(first+1, third), "a cursor between two records")
	require.Empty(t, read(third, 0))
	require.Empty(t, read(first, first))

	for range log.Read(ctx, "s", 0, 0) {
		break // a reader may stop at any time
	}
}

func longRead(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	const n = 1700
	var last uint64
	for i := 0; i < n; i += 100 {
		last = append1(t, log, "s", last, numbered(i, i+100)...)
		append1(t, log, "noise"+numbered(i, i+1)[0], 0, "n")
	}
	records := collect(t, log.Read(ctx, "s", 0, 0))
	require.Equal(t, numbered(0, n), texts(t, records))
	mid := records[n/2].Sequence
	require.Equal(t, numbered(n/2+1, n), texts(t, collect(t, log.Read(ctx, "s", mid, 0))))
}

func badCursors(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	_, err := log.Head(ctx, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = collectErr(log.Read(ctx, "s", 0, 0))
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = collectErr(log.Follow(ctx, "s", 0))
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	head := append1(t, log, "s", 0, "a")
	var ahead *eventlog.CursorAheadError
	_, err = collectErr(log.Read(ctx, "s", head+1, 0))
	require.ErrorAs(t, err, &ahead)
	require.Equal(t, head, ahead.Head)
	_, err = collectErr(log.Read(ctx, "s", 0, head+1))
	require.ErrorAs(t, err, &ahead)
	_, err = collectErr(log.Follow(ctx, "s", head+1))
	require.ErrorAs(t, err, &ahead)
}

// following runs a follower and hands over what it yields.
type following struct {
	records chan eventlog.Record
	err     chan error
	cancel  context.CancelCauseFunc
}

func startFollowing(t *testing.T, log eventlog.Log, session string, from uint64, without ...string) *following {
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	for _, writer := range without {
		ctx = eventlog.WithoutWriter(ctx, writer)
	}
	f := &following{records: make(chan eventlog.Record), err: make(chan error, 1), cancel: cancel}
	go func() {
		for r, err := range log.Follow(ctx, session, from) {
			if err != nil {
				f.err <- err
				return
			}
			select {
			case f.records <- r:
			case <-ctx.Done():
			}
		}
	}()
	return f
}

func (f *following) next(t *testing.T, n int) []string {
	t.Helper()
	var got []eventlog.Record
	for len(got) < n {
		select {
		case r := <-f.records:
			got = append(got, r)
		case err := <-f.err:
			require.NoError(t, err)
		case <-ctxOf(t).Done():
			require.Fail(t, "the follower stands still", "has %d of %d", len(got), n)
		}
	}
	return texts(t, got)
}

func follow(t *testing.T, log eventlog.Log) {
	head := append1(t, log, "s", 0, "a", "b")
	f := startFollowing(t, log, "s", head-1)
	require.Equal(t, []string{"b"}, f.next(t, 1))
	head = append1(t, log, "s", head, "c")
	append1(t, log, "other", 0, "not mine")
	head = append1(t, log, "s", head, "d", "e")
	require.Equal(t, []string{"c", "d", "e"}, f.next(t, 3))
	append1(t, log, "s", head, numbered(0, 600)...)
	require.Equal(t, numbered(0, 600), f.next(t, 600), "more than a follower buffers")

	stop := errors.New("stop")
	f.cancel(stop)
	require.ErrorIs(t, <-f.err, stop)
}

func attachment(t *testing.T, log eventlog.Log) {
	_, err := eventlog.Attach(ctxOf(t), log, "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	head := append1(t, log, "s", 0, numbered(0, 150)...)
	at, err := eventlog.Attach(ctxOf(t), log, "s")
	require.NoError(t, err)
	defer at.Leave()
	require.Equal(t, head, at.Head)
	head = append1(t, log, "s", head, "a", "b")

	past := eventlog.WithHead(ctxOf(t), "s", at.Head)
	require.Equal(t, numbered(0, 150), texts(t, collect(t, log.Read(past, "s", 0, at.Head))))
	require.Equal(t, numbered(50, 150), texts(t, collect(t, log.Read(past, "s", at.Head-100, at.Head))))
	beyond := collect(t, log.Read(past, "s", at.Head, head))
	require.Equal(t, []string{"a", "b"}, texts(t, beyond), "what has come since can be read")
	_, err = collectErr(log.Read(past, "s", head+1, 0))
	require.ErrorAs(t, err, new(*eventlog.CursorAheadError))

	var live []string
	for r, err := range at.Follow(ctxOf(t)) {
		if len(live) == 303 {
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			break
		}
		require.NoError(t, err)
		live = append(live, texts(t, []eventlog.Record{r})...)
		switch len(live) {
		case 2:
			head = append1(t, log, "s", head, "c")
			append1(t, log, "s", head, numbered(0, 300)...)
		case 303:
			_, err := log.Erase(ctxOf(t), "s")
			require.NoError(t, err)
		}
	}
	require.Equal(t, append([]string{"a", "b", "c"}, numbered(0, 300)...), live)
	at.Leave()
	at.Leave()
}

func followers(t *testing.T, log eventlog.Log) {
	head := append1(t, log, "s", 0, "a")
	slow := startFollowing(t, log, "s", 0)
	quick := startFollowing(t, log, "s", 0)
	for i := range 10 {
		head = append1(t, log, "s", head, numbered(i*100, i*100+100)...)
	}
	want := append([]string{"a"}, numbered(0, 1000)...)
	require.Equal(t, want, quick.next(t, 1001), "a reader that stands still holds up nobody")
	require.Equal(t, want, slow.next(t, 1001))
	slow.cancel(nil)
	quick.cancel(nil)
	<-slow.err
	<-quick.err
}

func withoutWriter(t *testing.T, log eventlog.Log) {
	head := append1(t, log, "s", 0, "a")
	appended := func(writer string, said ...string) {
		entries := make([]eventlog.Entry, len(said))
		for i, text := range said {
			entries[i] = Text("s", text)
			entries[i].Writer = writer
		}
		var err error
		head, err = put(ctxOf(t), log, "s", head, entries)
		require.NoError(t, err)
	}
	appended("me", "mine")
	appended("other", "b")
	at, err := eventlog.Attach(eventlog.WithoutWriter(ctxOf(t), "me"), log, "s")
	require.NoError(t, err)
	defer at.Leave()

	f := startFollowing(t, log, "s", 0, "me")
	require.Equal(t, []string{"a", "b"}, f.next(t, 2))
	var want []string
	for i := range 6 {
		appended("me", numbered(0, 100)...)
		from := []string{"other", "", "me too"}[i%3]
		appended(from, numbered(i, i+2)...)
		appended(from, numbered(i+2, i+3)...)
		want = append(want, numbered(i, i+3)...)
		if i%2 == 0 { // else it may be some records behind
			require.Equal(t, want, f.next(t, len(want)))
			want = nil
		}
	}
	appended("me", "the last one")
	require.Equal(t, want, f.next(t, len(want)))

	for r, err := range at.Follow(eventlog.WithoutWriter(ctxOf(t), "me")) {
		require.NoError(t, err)
		require.NotEqual(t, "me", r.Writer)
		if texts(t, []eventlog.Record{r})[0] == numbered(7, 8)[0] {
			break
		}
	}
}

func closing(t *testing.T, log eventlog.Log) {
	append1(t, log, "s", 0, "a")
	f := startFollowing(t, log, "s", 0)
	f.next(t, 1)
	require.NoError(t, log.Close())
	require.NoError(t, log.Close())
	require.ErrorIs(t, <-f.err, eventlog.ErrClosed)
	_, err := log.Append(ctxOf(t), "s", 0, []eventlog.Entry{Text("s", "x")})
	require.ErrorIs(t, err, eventlog.ErrClosed)
	_, err = collectErr(log.Read(ctxOf(t), "s", 0, 0))
	require.ErrorIs(t, err, eventlog.ErrClosed)
}
