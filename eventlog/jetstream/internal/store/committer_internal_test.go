package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestARefusedBatchLosesOnlyItsCulprits: existing sessions, new ones, and ones that were
// expected to be new, in one batch.
func TestARefusedBatchLosesOnlyItsCulprits(t *testing.T) {
	t.Parallel()
	l := newLog(t, link.Options{})
	entries := []eventlog.Entry{
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "a", Agent: "a"}, Payload: []byte(`{}`)},
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "b", Agent: "a"}, Payload: []byte(`{}`)},
	}
	heads := map[string]uint64{}
	for i := range 20 {
		session := fmt.Sprint("s", i)
		var err error
		heads[session], err = l.Append(t.Context(), session, 0, entries)
		require.NoError(t, err)
	}
	wrong := map[string]uint64{"s3": heads["s3"] - 1, "s7": 0, "new-2": 5, "s11": 1000}
	var members []*PendingAppend
	for i := range 30 {
		session := fmt.Sprint("s", i)
		if i >= 20 {
			session = fmt.Sprint("new-", i-20)
		}
		expected, bad := wrong[session]
		if !bad {
			expected = heads[session]
		}
		_, subject, err := l.Place(session)
		require.NoError(t, err)
		a, err := l.NewAppend(t.Context(), session, subject, expected, entries)
		require.NoError(t, err)
		a.done = make(chan struct{})
		members = append(members, a)
	}
	all := append([]*PendingAppend(nil), members...)
	l.Committers[0].commit(members)
	for _, a := range all {
		<-a.done
		if _, bad := wrong[a.Session]; bad {
			var conflict *eventlog.ConflictError
			require.ErrorAs(t, a.err, &conflict, a.Session)
			require.Equal(t, heads[a.Session], conflict.Head)
			continue
		}
		require.NoError(t, a.err, a.Session)
		head, err := l.Head(t.Context(), a.Session)
		require.NoError(t, err)
		require.Equal(t, a.last, head)
		n := 0
		for _, err := range l.Read(t.Context(), a.Session, 0, 0) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 2+2*min(1, int(heads[a.Session])), n)
	}
}

// TestARefusedBatchOfAMovedSessionStopsNoOthers: a growth has placed a session elsewhere
// after the append that creates it was sent, and the batch is refused.
func TestARefusedBatchOfAMovedSessionStopsNoOthers(t *testing.T) {
	t.Parallel()
	l := newLog(t, link.Options{Partitions: 2})
	in := func(p int) string {
		for i := 0; ; i++ {
			if session := fmt.Sprint("s", p, i); l.PartitionOf(session) == p {
				return session
			}
		}
	}
	stays, moved := in(0), in(1)
	head := storetest.Appended(t, l, stays, 0, storetest.TextEntries("x", 1))
	new, err := l.JS.Stream(t.Context(), layout.LogStream(1))
	require.NoError(t, err)
	require.NoError(t, new.Purge(t.Context(), natsjs.WithPurgeSequence(1<<24)))
	var members []*PendingAppend
	for session, expected := range map[string]uint64{"gone": 1, moved: 0} {
		a, err := l.NewAppend(t.Context(), session, layout.LogSubject(session, 0), expected, storetest.TextEntries("x", 1))
		require.NoError(t, err)
		a.done = make(chan struct{})
		members = append(members, a)
	}
	slices.SortFunc(members, func(a, b *PendingAppend) int { return cmp.Compare(a.Expected, b.Expected) })
	l.Committers[0].commit(slices.Clone(members))
	require.NoError(t, members[0].err)
	require.Error(t, members[1].err)
	storetest.Appended(t, l, stays, head, storetest.TextEntries("x", 1))
}

// newLog returns the store of a new server.
func newLog(t *testing.T, o link.Options) *Store {
	t.Helper()
	l, err := Open(t.Context(), storetest.Connect(t), o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	l.StartGrowth()
	return l
}

// appendOnly is a log whose sessions are neither followed nor erased.
type appendOnly struct{ *Store }

func (appendOnly) Follow(context.Context, string, uint64) iter.Seq2[eventlog.Record, error] {
	panic("followed")
}

func (appendOnly) Erase(context.Context, string) (eventlog.Erasure, error) { panic("erased") }

// queueing makes l believe that a batch of appends is in progress, so that appends queue
// up. The returned function waits until n are queued.
func queueing(t *testing.T, l *Store) (c *committer, queued func(n int)) {
	c = l.Committers[0]
	c.mu.Lock()
	c.batching = true
	c.mu.Unlock()
	return c, func(n int) {
		require.Eventually(t, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.queue) == n
		}, time.Minute, time.Millisecond)
	}
}

// An append that waits for a batch ends with its context: with the context's error alone
// if it was not sent, else as unknown.
func TestAGroupedAppendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := newLog(t, link.Options{Durability: eventlog.DurabilityFsync})
	c, queued := queueing(t, l)
	left := errors.New("left")
	begin := func(session string) (leave func() error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := l.Append(ctx, session, 0, storetest.TextEntries("x", 1))
			done <- err
		}()
		return func() error {
			cancel(left)
			return <-done
		}
	}
	leave := begin("unsent")
	queued(1)
	err := leave()
	require.ErrorIs(t, err, left)
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)

	leave = begin("sent")
	queued(1)
	c.mu.Lock()
	members := c.take()
	c.mu.Unlock()
	err = leave()
	require.ErrorIs(t, err, left)
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	c.commit(members)

	c.work()
	_, err = l.Head(t.Context(), "unsent")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = l.Head(t.Context(), "sent")
	require.NoError(t, err)
}

// Stop of a writer does not wait for the batch of other sessions.
func TestStopDoesNotWaitForABatch(t *testing.T) {
	l := newLog(t, link.Options{Durability: eventlog.DurabilityFsync})
	c, queued := queueing(t, l)
	w := eventlog.NewWriter(appendOnly{l}, "s", eventlog.WriterOptions{ID: "w"})
	appended := make(chan error, 1)
	go func() { appended <- w.Append(t.Context(), storetest.TextEntries("x", 1)...) }()
	queued(1)
	w.Stop()
	require.ErrorIs(t, <-appended, eventlog.ErrWriterBroken)
	c.work()
	_, err := l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// A batch that exceeds the server's limit of open batches is stored once there is room.
func TestABatchWaitsForRoomOnTheServer(t *testing.T) {
	t.Parallel()
	l := newLog(t, link.Options{})
	const serverTakes = 50
	open := func(i int, commit string) *nats.Msg {
		m := &nats.Msg{Subject: layout.LogSubject(fmt.Sprint("other-", i), 0), Header: nats.Header{
			wire.HeaderBatchID: {fmt.Sprint("batch-", i)}, wire.HeaderBatchSequence: {"1"}, wire.HeaderKind: {"chunk"},
		}}
		if commit != "" {
			m.Header[wire.HeaderBatchSequence] = []string{"2"}
			m.Header[wire.HeaderBatchCommit] = []string{commit}
		}
		return m
	}
	for i := range serverTakes {
		require.NoError(t, l.Conn.PublishMsg(open(i, "")))
	}
	_, err := l.SendOnce(t.Context(), []*nats.Msg{
		wire.NewMessage(layout.LogSubject("s", 0), wire.Stored{Record: eventlog.Record{Entry: storetest.TextEntry(0)}}, false),
		wire.NewMessage(layout.LogSubject("s", 0), wire.Stored{Record: eventlog.Record{Entry: storetest.TextEntry(1)}}, false),
	})
	require.ErrorIs(t, err, link.ErrBatchRefused, "the server takes no more")
	done := make(chan error, 1)
	go func() {
		_, err := l.Append(t.Context(), "s", 0, storetest.TextEntries("x", 2))
		done <- err
	}()
	_, err = l.Conn.RequestMsgWithContext(t.Context(), open(7, "1"))
	require.NoError(t, err)
	require.NoError(t, <-done)
	storetest.RequireRecords(t, l, "s", storetest.TextEntries("x", 2))
}

// An append that was in flight when the connection was closed may be stored.
func TestACloseLeavesUnknownWhatWasSent(t *testing.T) {
	t.Parallel()
	l := newLog(t, link.Options{})
	taken, err := l.Conn.SubscribeSync("nobody.answers")
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() {
		_, err := l.SendOnce(t.Context(), []*nats.Msg{wire.NewMessage("nobody.answers", wire.Stored{Record: eventlog.Record{Entry: storetest.TextEntry(0)}}, false)})
		sent <- err
	}()
	_, err = taken.NextMsgWithContext(t.Context())
	require.NoError(t, err)
	l.Conn.Close()
	err = <-sent
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.ErrorIs(t, err, eventlog.ErrClosed)
}

// TestSessionsAreNotCreatedWithoutALease: a process that can't read the phase of a growth
// creates no sessions, since others may not look for them there any more. It continues
// existing ones.
func TestSessionsAreNotCreatedWithoutALease(t *testing.T) {
	before := newLog(t, link.Options{})
	head := storetest.Appended(t, before, "old", 0, storetest.TextEntries("old", 1))
	l, err := Open(t.Context(), before.Conn, link.Options{}) // it does not ask
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = l.Append(ctx, "new", 0, storetest.TextEntries("new", 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = l.Head(t.Context(), "new")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	storetest.Appended(t, l, "old", head, storetest.TextEntries("old", 1))
}
