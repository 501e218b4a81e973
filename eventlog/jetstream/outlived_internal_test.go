package jetstream

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

var errKilled = errors.New("its process was killed")

// killedAfter returns a hook that runs before ahead of the first request with a prefix, sends that request,
// and fails all others of the same log from then on.
func killedAfter(prefix string, before func(context.Context)) hook {
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
func requireUsable(t *testing.T, l *Log, session string, last uint64) {
	t.Helper()
	_, err := l.Head(t.Context(), session)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	_, err = l.Append(t.Context(), session, last, textEntries("behind", 1))
	require.Error(t, err)
	entries := textEntries("new", 3)
	appended(t, l, session, 0, entries)
	requireRecords(t, l, session, entries)
	require.NoError(t, l.Seal(t.Context(), session))
	s, _, err := l.lastSegment(t.Context(), session)
	require.NoError(t, err)
	require.NotNil(t, s)
	require.Greater(t, s.Records[0].Sequence, last)
	floor, records, err := l.Copy(t.Context(), session, maxEnd)
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

// TestASegmentOfAKilledSealerBringsNothingBack: it is stored when the session has been erased, and
// the sealer does not live to take it back.
func TestASegmentOfAKilledSealerBringsNothingBack(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*testing.T, *Log, uint64){
		"looked for": func(t *testing.T, l *Log, last uint64) { requireUsable(t, l, "s", last) },
		"appended behind": func(t *testing.T, l *Log, last uint64) {
			_, err := l.Append(t.Context(), "s", last, textEntries("behind", 1))
			require.Error(t, err)
			requireUsable(t, l, "s", last)
		},
		"created again": func(t *testing.T, l *Log, _ uint64) {
			entries := textEntries("new", 150) // so many that segments are asked for
			appended(t, l, "s", 0, entries)
			requireRecords(t, l, "s", entries)
		},
		"never looked for": func(t *testing.T, l *Log, _ uint64) {
			requireForgotten(t, l, "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, nil)
			last := appended(t, l, "s", 0, textEntries("secret", 3))
			dead := openHooked(t, l.nc, killedAfter("publish helix.seg.", func(ctx context.Context) {
				_, err := l.Erase(ctx, "s")
				require.NoError(t, err)
			}))
			require.ErrorIs(t, dead.Seal(t.Context(), "s"), errKilled)
			then(t, l, last)
		})
	}
}

// TestASegmentThatArrivesInANewSession: its sealer was killed, its session erased, and the id is in use
// again when it is stored.
func TestASegmentThatArrivesInANewSession(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	appended(t, l, "s", 0, textEntries("secret", 3))
	entries := textEntries("new", 150)
	last := uint64(0)
	dead := openHooked(t, l.nc, killedAfter("publish helix.seg.", func(ctx context.Context) {
		_, err := l.Erase(ctx, "s")
		require.NoError(t, err)
		last = appended(t, l, "s", 0, entries)
	}))
	require.ErrorIs(t, dead.Seal(t.Context(), "s"), errKilled)
	requireRecords(t, l, "s", entries)
	require.NoError(t, l.Seal(t.Context(), "s"))
	s, _, err := l.lastSegment(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, last, s.Last())
}

// TestAFloorOfAKilledTrimIsOfNoNewSession: it is stored when the session has been erased.
func TestAFloorOfAKilledTrimIsOfNoNewSession(t *testing.T) {
	t.Parallel()
	for name, then := range map[string]func(*testing.T, *Log, uint64){
		"looked for":       func(t *testing.T, l *Log, last uint64) { requireUsable(t, l, "s", last) },
		"never looked for": func(t *testing.T, l *Log, _ uint64) { requireForgotten(t, l, "s") },
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, nil)
			head := uint64(0)
			for range 3 {
				head = appended(t, l, "s", head, textEntries("secret", 3))
				require.NoError(t, l.Seal(t.Context(), "s"))
			}
			_, err := l.Purge(t.Context(), purgeNow)
			require.NoError(t, err)
			dead := openHooked(t, l.nc, killedAfter("publish helix.floor.", func(ctx context.Context) {
				_, err := l.Erase(ctx, "s")
				require.NoError(t, err)
			}))
			_, err = dead.Trim(t.Context(), "s", head)
			require.ErrorIs(t, err, errKilled)
			then(t, l, head)
		})
	}
}

// requireForgotten requires that nothing of a session is left once its erasure's mark goes.
func requireForgotten(t *testing.T, l *Log, session string) {
	t.Helper()
	e, err := l.erasingOf(t.Context(), session)
	require.NoError(t, err)
	require.True(t, e.Done)
	for range 3 {
		err = finishAt(t.Context(), l, session, time.Now().Add(doneFor+time.Minute))
		require.NoError(t, err)
	}
	e, err = l.erasingOf(t.Context(), session)
	require.NoError(t, err)
	require.Zero(t, e.at)
	requireNothing(t, l, session)
}

// TestALateAppendWhosePayloadWasErased: it would create a session, and is stored when its sender has
// given up, and a session of the same id was created and erased.
func TestALateAppendWhosePayloadWasErased(t *testing.T) {
	t.Parallel()
	large := textEntries("x", 3)
	large[1].Payload = bytes.Repeat([]byte("secret"), inlineBytes)
	for name, then := range map[string]func(*testing.T, *Log, []wire.Stored){
		"looked for": func(t *testing.T, l *Log, late []wire.Stored) {
			requireUsable(t, l, "s", late[2].Sequence)
		},
		"followed": func(t *testing.T, l *Log, late []wire.Stored) {
			_, err := l.payload(t.Context(), "s", late[1])
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
		},
		"appended behind": func(t *testing.T, l *Log, late []wire.Stored) {
			_, err := l.Append(t.Context(), "s", late[2].Sequence, textEntries("behind", 1))
			require.Error(t, err)
			require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown)
			requireUsable(t, l, "s", late[2].Sequence)
		},
		"created": func(t *testing.T, l *Log, _ []wire.Stored) {
			appended(t, l, "s", 0, large)
			requireRecords(t, l, "s", large)
		},
		"never looked for": func(t *testing.T, l *Log, _ []wire.Stored) {
			requireForgotten(t, l, "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, nil)
			dead := openHooked(t, l.nc, killedAfter("publish helix.log.", func(ctx context.Context) {
				appended(t, l, "s", 0, textEntries("other", 1))
				_, err := l.Erase(ctx, "s")
				require.NoError(t, err)
			}))
			_, err := dead.Append(t.Context(), "s", 0, large)
			require.ErrorIs(t, err, errKilled)
			records, err := l.logRecords(t.Context(), "s", 0)
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

// TestAnAppendAsksForNothingThatItsNodeKnows: a node that has appended a record, or has found it as the
// head, sends one request to append after it. It looks at any other record first, once.
func TestAnAppendAsksForNothingThatItsNodeKnows(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	var points []string
	other := openHooked(t, l.nc, func(ctx context.Context, point string, do func(context.Context) error) error {
		points = append(points, point)
		return do(ctx)
	})
	requirePoints := func(want ...string) {
		t.Helper()
		require.Equal(t, want, points)
		points = nil
	}
	large := textEntries("x", 1)
	large[0].Payload = bytes.Repeat([]byte("large"), inlineBytes)
	publish := "publish " + layout.LogSubject("s", 0)

	head := appended(t, other, "s", 0, large)
	points = nil
	head = appended(t, other, "s", head, textEntries("own", 1))
	requirePoints(publish)
	head = appended(t, l, "s", head, textEntries("another node's", 1))
	head = appended(t, other, "s", head, textEntries("followed", 1))
	require.Equal(t, []string{"get", publish}, []string{points[0], points[len(points)-1]}, "a get that takes long is repeated")
	points = nil
	head = appended(t, l, "s", head, textEntries("another node's", 1))
	_, err := other.Head(t.Context(), "s")
	require.NoError(t, err)
	points = nil
	appended(t, other, "s", head, textEntries("found", 1))
	requirePoints(publish)
}

// TestTheRecordsThatANodeKnowsAreBounded: it forgets them when they are many, and looks again.
func TestTheRecordsThatANodeKnowsAreBounded(t *testing.T) {
	t.Parallel()
	var c checkedRecords
	for i := range 2*mostChecked + 1 {
		session := strconv.Itoa(i)
		c.add(session, 7)
		require.True(t, c.has(session, 7))
		require.False(t, c.has(session, 8))
	}
	require.LessOrEqual(t, len(c.of), mostChecked)
	require.False(t, c.has("0", 7))
}

// TestASegmentThatIsGoneReopensNoErasure: a replica that lags answers with a segment that an erasure,
// which is done, has removed.
func TestASegmentThatIsGoneReopensNoErasure(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	appended(t, l, "s", 0, textEntries("old", 3))
	require.NoError(t, l.Seal(t.Context(), "s"))
	lagging, err := l.lastMessage(t.Context(), layout.SegmentStream(0), layout.SegmentSubject("s", 0))
	require.NoError(t, err)
	_, err = l.Erase(t.Context(), "s")
	require.NoError(t, err)
	before, err := l.erasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.True(t, before.Done)

	points := 0
	replicated := openHooked(t, l.nc, func(ctx context.Context, point string, do func(context.Context) error) error {
		if point == "mark" || point == "delete" {
			points++
		}
		return do(ctx)
	})
	segment, _, err := replicated.usable(t.Context(), "s", lagging)
	require.NoError(t, err)
	require.Nil(t, segment)
	require.Zero(t, points)
	after, err := l.erasingOf(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// TestWhatCannotBeReadIsOfNoErasedSession: an erasure removes it only while its fence stands. Later it
// may be of a session that was created since.
func TestWhatCannotBeReadIsOfNoErasedSession(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]func(*erasing){
		"by a known fence":    func(*erasing) {},
		"by an unknown fence": func(e *erasing) { e.Fence = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			l := openLog(t, nil)
			damage := func() {
				_, err := l.storeMessage(t.Context(), &nats.Msg{Subject: layout.SegmentSubject("s", 0), Data: []byte("damaged"), Header: nats.Header{}})
				require.NoError(t, err)
			}
			segments := func() uint64 {
				n, err := l.count(t.Context(), layout.SegmentStream(0), layout.SegmentSubject("s", 0))
				require.NoError(t, err)
				return n
			}
			appended(t, l, "s", 0, textEntries("old", 3))
			damage()
			_, err := l.Erase(t.Context(), "s")
			require.NoError(t, err)
			require.Zero(t, segments())

			_, err = l.change(t.Context(), "s", func(e *erasing) bool { mark(e); return true })
			require.NoError(t, err)
			entries := textEntries("new", 3)
			appended(t, l, "s", 0, entries)
			damage()
			require.NoError(t, finishAt(t.Context(), l, "s", time.Now().Add(doneFor+time.Minute)))
			require.EqualValues(t, 1, segments())
			e, err := l.erasingOf(t.Context(), "s")
			require.NoError(t, err)
			require.Zero(t, e.at)
			requireRecords(t, l, "s", entries)
		})
	}
}
