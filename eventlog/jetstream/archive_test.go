package jetstream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// now purges everything that is sealed.
var now = eventlog.PurgeOptions{SealedFor: time.Nanosecond}

// history appends random batches to some sessions, with seals, purges and blobs in
// between, and returns the acknowledged records.
func history(t *testing.T, log *jetstream.Log, seed uint64, sessions, appends int) map[string][]eventlog.Record {
	t.Helper()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	all := map[string][]eventlog.Record{}
	for i := range appends {
		session := fmt.Sprint("s", r.IntN(sessions))
		var entries []eventlog.Entry
		for range 1 + r.IntN(120) {
			text := fmt.Sprint("text ", i, " ", r.Uint64())
			if r.IntN(400) == 0 {
				text += string(make([]byte, 200<<10+r.IntN(200<<10))) // inline, or a blob
			}
			e := logtest.Text(session, text)
			e.Writer, e.Ordinal = fmt.Sprint("w", r.IntN(2)), uint64(len(all[session])+len(entries)+1)
			entries = append(entries, e)
		}
		head := uint64(0)
		if old := all[session]; len(old) > 0 {
			head = old[len(old)-1].Sequence
		}
		last, err := log.Append(t.Context(), session, head, entries)
		require.NoError(t, err)
		for k, e := range entries {
			all[session] = append(all[session], eventlog.Record{Sequence: last - uint64(len(entries)-1-k), Entry: e})
		}
		switch r.IntN(12) {
		case 0:
			require.NoError(t, log.Seal(t.Context(), session))
		case 1:
			_, err := log.Purge(t.Context(), now)
			require.NoError(t, err)
		}
	}
	return all
}

func requireSame(t *testing.T, want, got []eventlog.Record) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		w, g := want[i], got[i]
		w.Entry, g.Entry, g.Time = w.Encoded(), g.Encoded(), w.Time
		require.Equal(t, w, g)
	}
}

func recordsOf(t *testing.T, log eventlog.Log, session string, from, to uint64) []eventlog.Record {
	t.Helper()
	var got []eventlog.Record
	for r, err := range log.Read(t.Context(), session, from, to) {
		require.NoError(t, err)
		got = append(got, r)
	}
	return got
}

func TestReadsJoinSegmentsAndLogAtEveryBoundary(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	t.Parallel() // most of it is waiting
	log := open(t, time.Second).(*jetstream.Log)
	appends := 30
	if testing.Short() {
		appends = 10
	}
	for session, want := range history(t, log, rand.Uint64(), 4, appends) {
		requireSame(t, want, recordsOf(t, log, session, 0, 0))
		r := rand.New(rand.NewPCG(1, 2))
		for range 10 + testkit.Times(20) {
			i, j := r.IntN(len(want)), r.IntN(len(want))
			if i > j {
				i, j = j, i
			}
			from, to := want[i].Sequence, want[j].Sequence
			requireSame(t, want[i+1:j+1], recordsOf(t, log, session, from, to))
			requireSame(t, want[i:j+1], recordsOf(t, log, session, from-1, to))
		}
	}
}

// TestCursorsStayValidAcrossAPurge: a client continues from any cursor after everything
// was purged from the log.
func TestCursorsStayValidAcrossAPurge(t *testing.T) {
	testkit.Sequential(t)
	t.Parallel()
	log := open(t, time.Second).(*jetstream.Log)
	want := []eventlog.Record{}
	head := uint64(0)
	for i := range 200 {
		e := logtest.Text("s", fmt.Sprint(i))
		last, err := log.Append(t.Context(), "s", head, []eventlog.Entry{e})
		require.NoError(t, err)
		head = last
		want = append(want, eventlog.Record{Sequence: last, Entry: e})
		_, err = log.Append(t.Context(), "other", uint64(2*i), []eventlog.Entry{logtest.Text("other", "x")})
		require.NoError(t, err)
	}
	done, err := log.Purge(t.Context(), now)
	require.NoError(t, err)
	require.EqualValues(t, 400, done[0].Records)
	got, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	require.Equal(t, head, got)
	for i := range want {
		requireSame(t, want[i+1:], recordsOf(t, log, "s", want[i].Sequence, 0))
	}
	var ids []string
	for id, err := range log.Sessions(t.Context()) {
		require.NoError(t, err)
		ids = append(ids, id)
	}
	require.Equal(t, []string{"other", "s"}, ids)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for r, err := range log.Follow(ctx, "s", want[10].Sequence) {
		require.NoError(t, err)
		if r.Sequence == head {
			break
		}
	}
}

func TestAppendsAfterAPurgeAreStillCompared(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"fsync", "interval=1s"} {
		t.Run(mode, func(t *testing.T) {
			log := openAs(t, time.Second, eventlog.Durability(mode)).(*jetstream.Log)
			add := func(expected uint64) (uint64, error) {
				return log.Append(t.Context(), "s", expected, []eventlog.Entry{logtest.Text("s", "a"), logtest.Text("s", "b")})
			}
			old, err := add(0)
			require.NoError(t, err)
			head, err := add(old)
			require.NoError(t, err)
			purged, err := log.Purge(t.Context(), now)
			require.NoError(t, err)
			require.EqualValues(t, 4, purged[0].Records)

			var conflict *eventlog.ConflictError
			_, err = add(0)
			require.ErrorAs(t, err, &conflict, "a session is not created again")
			require.Equal(t, head, conflict.Head)
			_, err = add(old)
			require.ErrorAs(t, err, &conflict, "later records are not overwritten")

			next, err := add(head)
			require.NoError(t, err)
			require.Greater(t, next, head, "sequences are not used again")
			_, err = add(head)
			require.ErrorAs(t, err, &conflict, "once only")
			records := recordsOf(t, log, "s", 0, 0)
			require.Len(t, records, 6)
			require.Equal(t, next, records[5].Sequence)
			requireSame(t, records[4:], recordsOf(t, log, "s", head, 0))

			_, err = log.Purge(t.Context(), now)
			require.NoError(t, err)
			requireSame(t, records, recordsOf(t, log, "s", 0, 0))
		})
	}
}

func TestAYoungSegmentIsNotPurgedFor(t *testing.T) {
	t.Parallel()
	log := open(t, time.Second).(*jetstream.Log)
	_, err := log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	done, err := log.Purge(t.Context(), eventlog.PurgeOptions{})
	require.NoError(t, err)
	require.Zero(t, done[0].Records)
	done, err = log.Purge(t.Context(), eventlog.PurgeOptions{OlderThan: time.Hour, SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.Zero(t, done[0].Records, "the record itself is young")
}

func TestBelowTheFloorIsATypedError(t *testing.T) {
	t.Parallel()
	log := open(t, time.Second).(*jetstream.Log)
	head := uint64(0)
	var records []eventlog.Record
	for i := range 10 {
		last, err := log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", fmt.Sprint(i))})
		require.NoError(t, err)
		head = last
		require.NoError(t, log.Seal(t.Context(), "s"))
	}
	records = recordsOf(t, log, "s", 0, 0)

	floor, err := log.Trim(t.Context(), "s", head)
	require.NoError(t, err)
	require.Zero(t, floor, "the log still has it all")
	_, err = log.Purge(t.Context(), now)
	require.NoError(t, err)
	floor, err = log.Trim(t.Context(), "s", records[5].Sequence)
	require.NoError(t, err)
	require.Equal(t, records[5].Sequence, floor)

	for _, from := range []uint64{0, records[0].Sequence, records[4].Sequence} {
		for _, err = range log.Read(t.Context(), "s", from, 0) {
		}
		var trimmed *eventlog.TrimmedError
		require.ErrorAs(t, err, &trimmed)
		require.Equal(t, eventlog.TrimmedError{Cursor: from, Floor: floor}, *trimmed)
	}
	requireSame(t, records[6:], recordsOf(t, log, "s", floor, 0))
	requireSame(t, records[8:], recordsOf(t, log, "s", records[7].Sequence, 0))

	last, err := log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "on")})
	require.NoError(t, err)
	require.Greater(t, last, head)
}
