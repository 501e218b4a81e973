package logtest

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
)

// plainSeeds is how many orders of whole operations a log of any kind is tried with, in a
// full run.
const plainSeeds = 50

// lifetimesInAnyOrder is Lifecycle with each operation as one step, from two users of
// one log.
func lifetimesInAnyOrder(t *testing.T, log eventlog.Log) {
	noted := &notedLog{Log: log, stored: map[string][]StoredRecord{}}
	l := Lifecycle{
		Nodes:  []eventlog.Log{noted, noted},
		Stored: func(session string) []StoredRecord { return noted.stored[session] },
		Seal:   func(context.Context, int, string) error { return nil },
		Tail:   func(context.Context, int, string) error { return nil },
		Resume: func(ctx context.Context, _ int, session string, at *uint64, known *bool, yield func(eventlog.Record) bool) error {
			head, err := log.Head(ctx, session)
			if err != nil || head == *at {
				return err
			}
			for r, err := range log.Follow(ctx, session, *at) {
				if err != nil {
					return err
				}
				*at, *known = r.Sequence, true
				if !yield(r) || r.Sequence >= head {
					return nil
				}
			}
			return nil
		},
	}
	for seed := range uint64(testkit.Times(plainSeeds)) {
		l.Large = 2 << 10 // to encode and to compare large payloads takes most of a seed's time
		if seed%5 == 0 {
			l.Large = 0
		}
		require.NoError(t, l.Run(ctxOf(t), seed))
	}
}

// notedLog notes what is stored.
type notedLog struct {
	eventlog.Log
	stored map[string][]StoredRecord
}

// Append implements eventlog.Log.
func (l *notedLog) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := l.Log.Append(ctx, session, expected, entries)
	if err == nil {
		for i, e := range entries {
			r := StoredRecord{Sequence: last - uint64(len(entries)-1-i), Previous: expected, Writer: e.Writer, Ordinal: e.Ordinal}
			l.stored[session] = append(l.stored[session], r)
			expected = r.Sequence
		}
	}
	return last, err
}

// Erase implements eventlog.Log.
func (l *notedLog) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	e, err := l.Log.Erase(ctx, session)
	if stored := l.stored[session]; !errors.Is(err, eventlog.ErrSessionNotFound) && len(stored) > 0 {
		l.stored[session] = append(stored, StoredRecord{Previous: stored[len(stored)-1].Sequence, Tombstone: true})
	}
	return e, err
}
