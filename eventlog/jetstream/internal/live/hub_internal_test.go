package live

import (
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/integration/testkit"
)

// A follower that does not read while more arrives than it buffers receives the rest at
// once, although no later record arrives: it needs no idle check.
func TestFollowerCatchesUpWithDropped(t *testing.T) {
	t.Parallel()
	l := openUnchecked(t, link.Options{})
	last := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 1))
	const n = 1000
	var seen uint64
	for r, err := range l.Follow(t.Context(), "s", last-1) {
		require.NoError(t, err)
		seen++
		require.Equal(t, seen, r.Sequence)
		switch seen {
		case 1:
			last = storetest.Appended(t, l, "s", last, storetest.TextEntries("live", 1))
		case 2: // now it is live and blocked
			for range n / 100 {
				last = storetest.Appended(t, l, "s", last, storetest.TextEntries("x", 100))
			}
		}
		if seen == n+2 {
			break
		}
	}
}

// Records that a follower leaves out need no room in its buffer, and the first one that
// it gets after them shows no gap: nothing is read from the log.
func TestWhatAFollowerLeavesOutIsNotReadFromTheLog(t *testing.T) {
	t.Parallel()
	l := openUnchecked(t, link.Options{})
	appended := func(after uint64, writer, text string, n int) uint64 {
		entries := storetest.TextEntries(text, n)
		for i := range entries {
			entries[i].Writer = writer
		}
		return storetest.Appended(t, l, "s", after, entries)
	}
	head := appended(0, "me", "x", 2)
	live, leave, err := l.live.join(eventlog.WithoutWriter(t.Context(), "me"), "s")
	require.NoError(t, err)
	defer leave()
	live.begin(head)
	for range 2 {
		at := head
		for range readerBuffer + 1 {
			head = appended(head, "me", "mine", 1)
			require.Eventually(t, func() bool { return live.past(at) == head }, time.Minute, time.Millisecond)
		}
		require.Empty(t, live.records)
		head = appended(head, "other", "theirs", 1)
		r := <-live.records
		require.Equal(t, head, r.Sequence)
		require.Equal(t, at, r.since)
		require.False(t, live.behind.Load())
		require.Equal(t, at-1, live.past(at-1), "a record before is missing")
	}
}

// TestALostRecordIsFoundBehindOnesThatAreLeftOut: the live message of another writer's
// record is lost, and only the writer that the follower leaves out appends after it.
func TestALostRecordIsFoundBehindOnesThatAreLeftOut(t *testing.T) {
	t.Parallel()
	l := openUnchecked(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 2))
	mine := storetest.TextEntries("mine", 1)
	mine[0].Writer = "me"
	heard := deafened(t, l, head-1, "me")
	for range 3 {
		lost := storetest.Appended(t, l, "s", head, storetest.TextEntries("theirs", 1))
		head = storetest.Appended(t, l, "s", lost, mine)
		r := wire.Stored{Record: eventlog.Record{Sequence: head, Entry: mine[0]}}
		l.live.hubOf("s").subscriptions["s"].handOut(r, lost)
		require.Equal(t, lost, (<-heard).Sequence)
	}
	require.Empty(t, heard)
}

// deafened follows the session "s", and makes this node receive none of its live
// messages.
func deafened(t *testing.T, l *followed, from uint64, without ...string) (heard <-chan eventlog.Record) {
	records := make(chan eventlog.Record, 10)
	ctx, cancel := context.WithCancel(t.Context())
	for _, writer := range without {
		ctx = eventlog.WithoutWriter(ctx, writer)
	}
	t.Cleanup(cancel)
	go func() {
		for r, err := range l.Follow(ctx, "s", from) {
			if err != nil {
				close(records)
				return
			}
			records <- r
		}
	}()
	<-records // it has joined
	h := l.live.hubOf("s")
	h.mu.Lock()
	defer h.mu.Unlock()
	require.NoError(t, h.subscriptions["s"].sub.Unsubscribe())
	return records
}

// The live message of a session's last record is lost without a reconnect, as when a
// leader dies before it republishes it, or a route between two servers breaks. A check
// finds it, however long the session was silent; the second one at the latest.
func TestALostLastRecordIsFound(t *testing.T) {
	t.Parallel()
	require.Less(t, 2*checkEvery, 2*time.Second)
	for name, settle := range map[string]func(l *followed){
		"in the log": func(*followed) {},
		"its predecessors are purged": func(l *followed) {
			_, err := l.Purge(t.Context(), storetest.PurgeNow)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openUnchecked(t, link.Options{})
			head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 20))
			other := storetest.Appended(t, l, "other", 0, storetest.TextEntries("x", 1))
			heard := deafened(t, l, head-1)
			settle(l)
			for range 20 { // others' records say nothing about this one
				l.live.hubOf("s").check()
				other = storetest.Appended(t, l, "other", other, storetest.TextEntries("x", 1))
			}
			require.Empty(t, heard)
			for range 3 {
				lost := storetest.Appended(t, l, "s", head, storetest.TextEntries("y", 1))
				l.live.hubOf("s").check()
				l.live.hubOf("s").check()
				require.Equal(t, lost, (<-heard).Sequence)
				head = lost
			}
			require.Empty(t, heard)
		})
	}
}

// An erased session has no newer record. If its followers miss the live message, they
// notice the erasure within a minute.
func TestALostErasureIsFound(t *testing.T) {
	t.Parallel()
	l := openUnchecked(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 2))
	heard := deafened(t, l, head-1)
	h := l.live.hubOf("s")
	h.check()
	_, err := l.Erase(t.Context(), "s")
	require.NoError(t, err)
	h.mu.Lock()
	if f := h.subscriptions["s"]; f != nil { // otherwise its follower has received it already
		f.check.asked = time.Now().Add(-askEvery)
	}
	h.mu.Unlock()
	h.check()
	_, open := <-heard
	require.False(t, open)
}

// The cost of a check of many silent sessions: one request if the partition is silent;
// otherwise one more for each 200 of them, or three if a purge has left none of their
// records in the log.
func TestAChecksCost(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for name, perMany := range map[string]uint64{"in the log": 1, "purged": 3} {
		t.Run(name, func(t *testing.T) { aChecksCost(t, perMany) })
	}
}

func aChecksCost(t *testing.T, perMany uint64) {
	l := openUnchecked(t, link.Options{Partitions: 1})
	h := l.live.hubs[0]
	const sessions = 450
	for i := range sessions {
		session := fmt.Sprint("s", i)
		storetest.Appended(t, l, session, 0, storetest.TextEntries("x", 1))
		_, leave, err := h.join(t.Context(), session)
		require.NoError(t, err)
		t.Cleanup(leave)
	}
	if perMany > 1 {
		_, err := l.Purge(t.Context(), storetest.PurgeNow)
		require.NoError(t, err)
	}
	other := storetest.Appended(t, l, "other", 0, storetest.TextEntries("x", 1))
	h.check()
	h.check()
	// The log's own maintenance also uses the connection every few seconds: the least of
	// some counts is without it.
	requests := func(before func()) uint64 {
		least := uint64(math.MaxUint64)
		for range 5 {
			before()
			sent := l.Conn.Stats().OutMsgs
			h.check()
			least = min(least, l.Conn.Stats().OutMsgs-sent)
		}
		return least
	}
	silent := func() {}
	require.EqualValues(t, 1, requests(silent))
	require.Equal(t, 1+3*perMany, requests(func() { other = storetest.Appended(t, l, "other", other, storetest.TextEntries("x", 1)) }))
	h.check()
	require.EqualValues(t, 1, requests(silent))
}

// Without a connection a check sends nothing: requests would wait in the client's buffer,
// which appends need, and go to the server all at once.
func TestNothingIsCheckedWithoutAConnection(t *testing.T) {
	t.Parallel()
	srv, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	l := openFollowed(t, unchecked(t), nc, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 1))
	deafened(t, l, head-1)
	srv.Stop()
	require.Eventually(t, func() bool { return !nc.IsConnected() }, time.Minute, time.Millisecond)
	before := nc.Stats().OutMsgs
	l.live.hubOf("s").check()
	require.Equal(t, before, nc.Stats().OutMsgs)
}

// Messages that were lost before a reconnect are found after it, also if one reconnect
// follows another.
func TestEveryReconnectIsHandled(t *testing.T) {
	t.Parallel()
	l := openUnchecked(t, link.Options{})
	head := storetest.Appended(t, l, "s", 0, storetest.TextEntries("x", 1))
	heard := deafened(t, l, head-1)
	for range 200 {
		head = storetest.Appended(t, l, "s", head, storetest.TextEntries("y", 1))
		l.NoteReconnect()
		require.Equal(t, head, (<-heard).Sequence)
	}
}

// TestACatchUpThatADeposedLeaderHasAnswered: it lacks the record that has been announced,
// and no later one comes. The follower receives it even so.
func TestACatchUpThatADeposedLeaderHasAnswered(t *testing.T) {
	t.Parallel()
	nc := storetest.Connect(t)
	other, err := maintenance.Open(t.Context(), nc, link.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	var later atomic.Pointer[func()]
	l := openFollowed(t, link.WithTuning(t.Context(), link.Tuning{Hook: func(ctx context.Context, point string, do func(context.Context) error) error {
		err := do(ctx)
		if strings.HasPrefix(point, "$JS.API.STREAM.MSG.GET.") {
			if f := later.Swap(nil); f != nil {
				(*f)()
			}
		}
		return err
	}}), nc, link.Options{})
	l.Opts.Replicas = 3
	head := storetest.Appended(t, other, "s", 0, storetest.TextEntries("x", 1))
	heard := deafened(t, l, head-1)
	h := l.live.hubOf("s")
	h.mu.Lock()
	f := h.subscriptions["s"]
	h.mu.Unlock()
	for range 2 {
		next := head + 1
		store := func() { storetest.Appended(t, other, "s", head, storetest.TextEntries("y", 1)) }
		later.Store(&store)
		f.last.Store(next)
		f.allBehind()
		require.Equal(t, next, (<-heard).Sequence)
		head = next
	}
}

// unchecked is the context of a log that does not look for lost records.
func unchecked(t *testing.T) context.Context {
	return link.WithTuning(t.Context(), link.Tuning{CheckEvery: time.Hour})
}

// followed is a log that can be followed.
type followed struct {
	*maintenance.Maintenance
	live *Live
}

func (f *followed) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return f.live.Follow(ctx, session, from)
}

func openFollowed(t *testing.T, ctx context.Context, nc *nats.Conn, o link.Options) *followed {
	t.Helper()
	l, err := maintenance.Open(ctx, nc, o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	f := &followed{l, New(l.Store)}
	f.live.Start()
	return f
}

func openUnchecked(t *testing.T, o link.Options) *followed {
	t.Helper()
	return openFollowed(t, unchecked(t), storetest.Connect(t), o)
}
