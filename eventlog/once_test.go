package eventlog_test

import (
	"context"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
)

// erasingLog is a log of which an erasure has left the tombstone: appends answer a
// conflict, and for readers the session is gone.
type erasingLog struct {
	eventlog.Log
	answers []error // of appends, before the tombstone answers them
}

func (l *erasingLog) Append(context.Context, string, uint64, []eventlog.Entry) (uint64, error) {
	if len(l.answers) > 0 {
		err := l.answers[0]
		l.answers = l.answers[1:]
		return 0, err
	}
	return 0, &eventlog.ConflictError{Head: 7}
}

func TestAnAppendToASessionThatIsBeingErasedIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		entries := []eventlog.Entry{logtest.Text("s", "x")}
		_, err := eventlog.AppendOnce(ctx, &erasingLog{Log: memory.New()}, "s", "p", 0, entries)
		require.ErrorIs(t, err, eventlog.ErrErasing)
		require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown, "nothing was written")
		require.Zero(t, time.Since(start))

		// A first try that got no answer may come when the erasure is finished.
		log := &erasingLog{Log: memory.New(), answers: []error{eventlog.ErrOutcomeUnknown}}
		_, err = eventlog.AppendOnce(ctx, log, "s", "p", 0, entries)
		require.ErrorIs(t, err, eventlog.ErrErasing)
		require.ErrorIs(t, err, eventlog.ErrOutcomeUnknown)
		require.Less(t, time.Since(start), time.Second)
	})
}

// A conflict that does not tell a head is one with an append that is in flight:
// that one may be the session's first.
func TestAConflictInFlightIsNoErasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &inFlightLog{Log: memory.New()}
		_, err := eventlog.AppendOnce(t.Context(), log, "s", "p", 0, []eventlog.Entry{logtest.Text("s", "x")})
		require.NoError(t, err)
	})
}

// inFlightLog refuses the first append, as a server does while another one is
// in flight, which then fails.
type inFlightLog struct {
	eventlog.Log
	refused bool
}

func (l *inFlightLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if !l.refused {
		l.refused = true
		return 0, &eventlog.ConflictError{}
	}
	return l.Log.Append(ctx, session, expected, entries)
}

// staleLog takes an append, which arrives twice, and answers the second one; who
// reads next asks a server that has not heard of either.
type staleLog struct {
	eventlog.Log
	stale bool
}

func (l *staleLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if _, err := l.Log.Append(ctx, session, expected, entries); err != nil {
		return 0, err
	}
	l.stale = true
	return l.Log.Append(ctx, session, expected, entries)
}

func (l *staleLog) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	if l.stale {
		l.stale = false
		return func(yield func(eventlog.Record, error) bool) {
			yield(eventlog.Record{}, &eventlog.CursorAheadError{Cursor: from, Head: from - 1})
		}
	}
	return l.Log.Read(ctx, session, from, to)
}

func TestAServerThatIsBehindDoesNotMakeAnAppendRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &staleLog{Log: memory.New()}
		head, err := log.Log.Append(t.Context(), "s", 0, []eventlog.Entry{logtest.Text("s", "x")})
		require.NoError(t, err)
		last, err := eventlog.AppendOnce(t.Context(), log, "s", "p", head, []eventlog.Entry{logtest.Text("s", "y")})
		require.NoError(t, err)
		require.Equal(t, head+1, last)
	})
}
