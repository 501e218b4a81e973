package jetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// TestARefusedBatchLosesOnlyItsCulprits: sessions that exist, that are new and
// that were expected to be new, in one batch.
func TestARefusedBatchLosesOnlyItsCulprits(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
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
	var members []*pendingAppend
	for i := range 30 {
		session := fmt.Sprint("s", i)
		if i >= 20 {
			session = fmt.Sprint("new-", i-20)
		}
		expected, bad := wrong[session]
		if !bad {
			expected = heads[session]
		}
		_, subject, err := l.place(session)
		require.NoError(t, err)
		a, err := l.newAppend(t.Context(), session, subject, expected, entries)
		require.NoError(t, err)
		a.done = make(chan struct{})
		members = append(members, a)
	}
	all := append([]*pendingAppend(nil), members...)
	l.committers[0].commit(members)
	for _, a := range all {
		<-a.done
		if _, bad := wrong[a.session]; bad {
			var conflict *eventlog.ConflictError
			require.ErrorAs(t, a.err, &conflict, a.session)
			require.Equal(t, heads[a.session], conflict.Head)
			continue
		}
		require.NoError(t, a.err, a.session)
		head, err := l.Head(t.Context(), a.session)
		require.NoError(t, err)
		require.Equal(t, a.last, head)
		n := 0
		for _, err := range l.Read(t.Context(), a.session, 0, 0) {
			require.NoError(t, err)
			n++
		}
		require.Equal(t, 2+2*min(1, int(heads[a.session])), n)
	}
}

// queueing has l take a batch of appends for under way, so that appends queue up.
// The returned function waits until n are queued.
func queueing(t *testing.T, l *Log) (c *committer, queued func(n int)) {
	c = l.committers[0]
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

// An append that waits for a batch ends with its context: with the context's error
// alone if it was not sent, and as unknown if it was.
func TestAGroupedAppendEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := openLog(t, &Options{Durability: eventlog.DurabilityFsync})
	c, queued := queueing(t, l)
	left := errors.New("left")
	begin := func(session string) (leave func() error) {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := l.Append(ctx, session, 0, textEntries("x", 1))
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
	l := openLog(t, &Options{Durability: eventlog.DurabilityFsync})
	c, queued := queueing(t, l)
	w := eventlog.NewWriter(l, "s", eventlog.WriterOptions{ID: "w"})
	appended := make(chan error, 1)
	go func() { appended <- w.Append(t.Context(), textEntries("x", 1)...) }()
	queued(1)
	w.Stop()
	require.ErrorIs(t, <-appended, eventlog.ErrWriterBroken)
	c.work()
	_, err := l.Head(t.Context(), "s")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// A session whose records a purge has left to the segments does not take the
// others' batch apart, whichever node has purged.
func TestAPurgedSessionLeavesABatchWhole(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("known=%v", known), func(t *testing.T) {
			l := openLog(t, &Options{Durability: eventlog.DurabilityFsync})
			heads := map[string]uint64{"purged": appended(t, l, "purged", 0, textEntries("x", 20))}
			purger := l
			if !known {
				purger = secondNode(t, l)
			}
			_, err := purger.Purge(t.Context(), purgeNow)
			require.NoError(t, err)
			for i := range 30 {
				session := fmt.Sprint("s", i)
				heads[session] = appended(t, l, session, 0, textEntries("x", 1))
			}
			c, queued := queueing(t, l)
			require.Equal(t, known, c.begins.Load() > heads["purged"])
			type answer struct {
				session string
				last    uint64
				err     error
			}
			answers := make(chan answer)
			for session, head := range heads {
				go func() {
					last, err := l.Append(t.Context(), session, head, textEntries("y", 1))
					answers <- answer{session, last, err}
				}()
			}
			queued(len(heads))
			c.work()
			batches := map[string]bool{}
			for range heads {
				a := <-answers
				require.NoError(t, a.err, a.session)
				m, err := l.messageAt(t.Context(), layout.LogStream(0), a.last)
				require.NoError(t, err)
				if a.session != "purged" {
					batches[wire.First(m.Header, wire.HeaderBatchID)] = true
				}
			}
			require.Len(t, batches, 1, "the others were stored together")
			require.NotContains(t, batches, "")
			requireRecords(t, l, "purged", append(textEntries("x", 20), textEntries("y", 1)...))
		})
	}
}

// A batch that finds as many open as the server takes is stored once there is
// room.
func TestABatchWaitsForRoomOnTheServer(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
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
		require.NoError(t, l.nc.PublishMsg(open(i, "")))
	}
	_, err := l.sendOnce(t.Context(), []*nats.Msg{
		wire.NewMessage(layout.LogSubject("s", 0), wire.Stored{Record: eventlog.Record{Entry: textEntry(0)}}, false),
		wire.NewMessage(layout.LogSubject("s", 0), wire.Stored{Record: eventlog.Record{Entry: textEntry(1)}}, false),
	})
	require.ErrorIs(t, err, errBatchRefused, "the server takes no more")
	done := make(chan error, 1)
	go func() {
		_, err := l.Append(t.Context(), "s", 0, textEntries("x", 2))
		done <- err
	}()
	_, err = l.nc.RequestMsgWithContext(t.Context(), open(7, "1"))
	require.NoError(t, err)
	require.NoError(t, <-done)
	requireRecords(t, l, "s", textEntries("x", 2))
}

// What was sent when the connection is closed may be stored.
func TestACloseLeavesUnknownWhatWasSent(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	taken, err := l.nc.SubscribeSync("nobody.answers")
	require.NoError(t, err)
	sent := make(chan error, 1)
	go func() {
		_, err := l.sendOnce(t.Context(), []*nats.Msg{wire.NewMessage("nobody.answers", wire.Stored{Record: eventlog.Record{Entry: textEntry(0)}}, false)})
		sent <- err
	}()
	_, err = taken.NextMsgWithContext(t.Context())
	require.NoError(t, err)
	l.nc.Close()
	err = <-sent
	require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
	require.ErrorIs(t, err, eventlog.ErrClosed)
}
