package memory

import (
	"context"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// Erase implements eventlog.Log.
func (l *Log) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	if err := eventlog.ValidateSessionID(session); err != nil {
		return eventlog.Erasure{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return eventlog.Erasure{}, eventlog.ErrClosed
	}
	records, ok := l.sessions[session]
	if only, known := eventlog.HeadFrom(ctx, session); known {
		ok = slices.ContainsFunc(records, func(r eventlog.Record) bool { return r.Sequence == only })
	}
	if !ok {
		return eventlog.Erasure{}, eventlog.ErrSessionNotFound
	}
	delete(l.sessions, session)
	l.last++ // as the record that fences it has a sequence elsewhere
	close(l.changed)
	l.changed = make(chan struct{})
	return eventlog.Erasure{Records: len(records)}, nil
}
