package maintenance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

var errKilled = errors.New("its process was killed")

// killedAfter returns a hook that calls before ahead of the first request with a prefix,
// sends that request, and fails all later ones of the same log.
func killedAfter(prefix string, before func(context.Context)) link.Hook {
	killed := false
	return func(ctx context.Context, point string, do func(context.Context) error) error {
		if killed {
			return errKilled
		}
		if !strings.HasPrefix(point, prefix) {
			return do(ctx)
		}
		killed = true
		before(context.WithoutCancel(ctx))
		_ = do(ctx)
		return errKilled
	}
}

// requireUsable requires that a session id is free, and that a session can be created, sealed,
// copied and erased under it.
func requireUsable(t *testing.T, l *Maintenance, session string, last uint64) {
	t.Helper()
	_, err := l.Head(t.Context(), session)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = l.Append(t.Context(), session, last, storetest.TextEntries("behind", 1))
	require.Error(t, err)
	entries := storetest.TextEntries("new", 3)
	storetest.Appended(t, l, session, 0, entries)
	storetest.RequireRecords(t, l, session, entries)
	require.NoError(t, l.Seal(t.Context(), session))
	s, _, err := l.LastSegment(t.Context(), session)
	require.NoError(t, err)
	require.NotNil(t, s)
	require.Greater(t, s.Records[0].Sequence, last)
	floor, records, err := l.Copy(t.Context(), session, 1<<52)
	require.NoError(t, err)
	require.Zero(t, floor)
	n := 0
	for _, err := range records {
		require.NoError(t, err)
		n++
	}
	require.Len(t, entries, n)
	_, err = l.Erase(t.Context(), session)
	require.NoError(t, err)
	_, err = l.Head(t.Context(), session)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// TestASegmentOfAKilledSealerBringsNothingBack: it is stored after the session was
// erased, and the sealer does not live to remove it.
func TestASegmentOfAKilledSealerBringsNothingBack(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*testing.T, *Maintenance, uint64){
		"looked for": func(t *testing.T, l *Maintenance, last uint64) { requireUsable(t, l, "s", last) },
		"appended after": func(t *testing.T, l *Maintenance, last uint64) {
			_, err := l.Append(t.Context(), "s", last, storetest.TextEntries("behind", 1))
			require.Error(t, err)
			requireUsable(t, l, "s", last)
		},
		"created again": func(t *testing.T, l *Maintenance, _ uint64) {
			entries := storetest.TextEntries("new", 150) // so many that segments are read
			storetest.Appended(t, l, "s", 0, entries)
			storetest.RequireRecords(t, l, "s", entries)
		},
		"never looked for": func(t *testing.T, l *Maintenance, _ uint64) {
			requireForgotten(t, l, "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			last := storetest.Appended(t, l, "s", 0, storetest.TextEntries("secret", 3))
			dead := openHooked(t, l.Conn, killedAfter("publish helix.seg.", func(ctx context.Context) {
				_, err := l.Erase(ctx, "s")
				require.NoError(t, err)
			}))
			require.ErrorIs(t, dead.Seal(t.Context(), "s"), errKilled)
			then(t, l, last)
		})
	}
}

// TestASegmentThatArrivesInANewSession: its sealer was killed, its session erased, and
// the id is in use again when the segment is stored.
func TestASegmentThatArrivesInANewSession(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("secret", 3))
	entries := storetest.TextEntries("new", 150)
	last := uint64(0)
	dead := openHooked(t, l.Conn, killedAfter("publish helix.seg.", func(ctx context.Context) {
		_, err := l.Erase(ctx, "s")
		require.NoError(t, err)
		last = storetest.Appended(t, l, "s", 0, entries)
	}))
	require.ErrorIs(t, dead.Seal(t.Context(), "s"), errKilled)
	storetest.RequireRecords(t, l, "s", entries)
	require.NoError(t, l.Seal(t.Context(), "s"))
	s, _, err := l.LastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, last, s.Last())
}

// TestAFloorOfAKilledTrimIsOfNoNewSession: it is stored after the session was erased.
func TestAFloorOfAKilledTrimIsOfNoNewSession(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*testing.T, *Maintenance, uint64){
		"looked for":       func(t *testing.T, l *Maintenance, last uint64) { requireUsable(t, l, "s", last) },
		"never looked for": func(t *testing.T, l *Maintenance, _ uint64) { requireForgotten(t, l, "s") },
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			head := uint64(0)
			for range 3 {
				head = storetest.Appended(t, l, "s", head, storetest.TextEntries("secret", 3))
				require.NoError(t, l.Seal(t.Context(), "s"))
			}
			_, err := l.Purge(t.Context(), storetest.PurgeNow)
			require.NoError(t, err)
			dead := openHooked(t, l.Conn, killedAfter("publish helix.floor.", func(ctx context.Context) {
				_, err := l.Erase(ctx, "s")
				require.NoError(t, err)
			}))
			_, err = dead.Trim(t.Context(), "s", head)
			require.ErrorIs(t, err, errKilled)
			then(t, l, head)
		})
	}
}

// requireForgotten requires that nothing of a session is left once its erasure's mark is
// removed.
func requireForgotten(t *testing.T, l *Maintenance, session string) {
	t.Helper()
	e, err := l.ErasingOf(t.Context(), session)
	require.NoError(t, err)
	require.True(t, e.Done)
	for range 3 {
		err = finishAt(t.Context(), l, session, time.Now().Add(store.DoneFor+time.Minute))
		require.NoError(t, err)
	}
	e, err = l.ErasingOf(t.Context(), session)
	require.NoError(t, err)
	require.Zero(t, e.At)
	requireNothing(t, l, session)
}

// TestALateAppendWhosePayloadWasErased: it would create a session, and is stored after
// its sender has given up, and after a session of the same id was created and erased.
func TestALateAppendWhosePayloadWasErased(t *testing.T) {
	t.Parallel()
	large := storetest.TextEntries("x", 3)
	large[1].Payload = bytes.Repeat([]byte("secret"), store.InlineBytes)
	for name, then := range map[string]func(*testing.T, *Maintenance, []wire.Stored){
		"looked for": func(t *testing.T, l *Maintenance, late []wire.Stored) {
			requireUsable(t, l, "s", late[2].Sequence)
		},
		"followed": func(t *testing.T, l *Maintenance, late []wire.Stored) {
			_, err := l.Payload(t.Context(), "s", late[1])
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		},
		"appended after": func(t *testing.T, l *Maintenance, late []wire.Stored) {
			_, err := l.Append(t.Context(), "s", late[2].Sequence, storetest.TextEntries("behind", 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
			requireUsable(t, l, "s", late[2].Sequence)
		},
		"created": func(t *testing.T, l *Maintenance, _ []wire.Stored) {
			storetest.Appended(t, l, "s", 0, large)
			storetest.RequireRecords(t, l, "s", large)
		},
		"never looked for": func(t *testing.T, l *Maintenance, _ []wire.Stored) {
			requireForgotten(t, l, "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			dead := openHooked(t, l.Conn, killedAfter("publish helix.log.", func(ctx context.Context) {
				storetest.Appended(t, l, "s", 0, storetest.TextEntries("other", 1))
				_, err := l.Erase(ctx, "s")
				require.NoError(t, err)
			}))
			_, err := dead.Append(t.Context(), "s", 0, large)
			require.ErrorIs(t, err, errKilled)
			records, err := l.logRecords(t.Context(), "s")
			require.NoError(t, err)
			var late []wire.Stored
			for r, err := range records {
				require.NoError(t, err)
				late = append(late, r)
			}
			require.Len(t, late, 3)
			then(t, l, late)
		})
	}
}

// TestAnAppendAsksForNothingThatItsNodeKnows: a node that has appended a record, or has
// found it as the head, sends one request to append after it. It reads any other record
// first, once.
func TestAnAppendAsksForNothingThatItsNodeKnows(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	var points []string
	other := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		points = append(points, point)
		return do(ctx)
	})
	requirePoints := func(want ...string) {
		t.Helper()
		require.Equal(t, want, points)
		points = nil
	}
	large := storetest.TextEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("large"), store.InlineBytes)
	publish := "publish " + layout.LogSubject("s", 0)

	head := storetest.Appended(t, other, "s", 0, large)
	points = nil
	head = storetest.Appended(t, other, "s", head, storetest.TextEntries("own", 1))
	requirePoints(publish)
	head = storetest.Appended(t, l, "s", head, storetest.TextEntries("another node's", 1))
	head = storetest.Appended(t, other, "s", head, storetest.TextEntries("followed", 1))
	require.Equal(t, []string{"get", publish}, []string{points[0], points[len(points)-1]}, "a get that takes long is repeated")
	points = nil
	head = storetest.Appended(t, l, "s", head, storetest.TextEntries("another node's", 1))
	_, err := other.Head(t.Context(), "s")
	require.NoError(t, err)
	points = nil
	storetest.Appended(t, other, "s", head, storetest.TextEntries("found", 1))
	requirePoints(publish)
}

// TestASegmentThatIsGoneReopensNoErasure: a replica that lags answers with a segment that an erasure,
// which is done, has removed.
func TestASegmentThatIsGoneReopensNoErasure(t *testing.T) {
	t.Parallel()
	l := openLog(t, link.Options{})
	storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
	require.NoError(t, l.Seal(t.Context(), "s"))
	lagging, err := l.LastMessage(t.Context(), layout.SegmentStream(0), layout.SegmentSubject("s", 0))
	require.NoError(t, err)
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	before, err := l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, before.Done)

	points := 0
	replicated := openHooked(t, l.Conn, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "mark" || point == "delete" {
			points++
		}
		return do(ctx)
	})
	segment, _, err := replicated.Usable(t.Context(), "s", lagging)
	require.NoError(t, err)
	require.Nil(t, segment)
	require.Zero(t, points)
	after, err := l.ErasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestAnUnreadableMessageIsOfNoErasedSession: an erasure removes it only while its tombstone
// exists. Later it may be of a session that was created since.
func TestAnUnreadableMessageIsOfNoErasedSession(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(*store.Erasing){
		"by a known tombstone":    func(*store.Erasing) {},
		"by an unknown tombstone": func(e *store.Erasing) { e.Tombstone = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, link.Options{})
			damage := func() {
				_, err := l.StoreMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("s", 0), Data: []byte("damaged"), Header: nats.Header{}})
				require.NoError(t, err)
			}
			segments := func() uint64 {
				n, err := l.Count(t.Context(), layout.SegmentStream(0), layout.SegmentSubject("s", 0))
				require.NoError(t, err)
				return n
			}
			storetest.Appended(t, l, "s", 0, storetest.TextEntries("old", 3))
			damage()
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
			require.Zero(t, segments())

			_, err = l.Change(t.Context(), "s", func(e *store.Erasing) bool { mark(e); return true })
			require.NoError(t, err)
			entries := storetest.TextEntries("new", 3)
			storetest.Appended(t, l, "s", 0, entries)
			damage()
			require.NoError(t, finishAt(t.Context(), l, "s", time.Now().Add(store.DoneFor+time.Minute)))
			require.EqualValues(t, 1, segments())
			e, err := l.ErasingOf(t.Context(), "s")
			require.NoError(t, err)
			require.Zero(t, e.At)
			storetest.RequireRecords(t, l, "s", entries)
		})
	}
}

// TestALaggingReplicaBringsNothingErasedBack: it answers with the records, or the segments,
// of a session that was erased, whose id is in use again.
func TestALaggingReplicaBringsNothingErasedBack(t *testing.T) {
	t.Parallel()
	for _, sealed := range []bool{true, false} {
		t.Run(fmt.Sprintf("sealed=%t", sealed), func(t *testing.T) {
			t.Parallel()
			l := openLog(t, link.Options{})
			head := uint64(0)
			for range 2 {
				head = storetest.Appended(t, l, "s", head, storetest.TextEntries("secret", 3))
				if sealed {
					require.NoError(t, l.Seal(t.Context(), "s"))
				}
			}
			for at := uint64(1); sealed && at <= head; at++ {
				require.NoError(t, l.Remove(t.Context(), layout.LogStream(0), at))
			}
			tombstone := storetest.Appended(t, l, "other", 0, storetest.TextEntries("x", 1))
			_, err := l.Change(t.Context(), "s", func(e *store.Erasing) bool {
				e.Tombstone, e.Removed, e.Done = tombstone, true, true
				return true
			})
			require.NoError(t, err)
			replicated := openHooked(t, l.Conn, func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) })
			replicated.Opts.Replicas = 3
			read := false
			for r, err := range replicated.Read(eventlog.WithHead(t.Context(), "s", head+200), "s", 0, 0) {
				require.Error(t, err, "record %d", r.Sequence)
				read = true
			}
			require.True(t, read)
		})
	}
}
