package memory

import (
	"context"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

var _ eventlog.ChangeFeed = (*Log)(nil)

// place is the session and the index of the record with a sequence.
type place struct {
	sequence uint64
	session  string
}

// Identity implements eventlog.ChangeFeed.
func (l *Log) Identity(context.Context) (string, error) { return l.identity, nil }

// Spans implements eventlog.ChangeFeed.
func (l *Log) Spans(context.Context) ([]eventlog.Span, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, eventlog.ErrClosed
	}
	return []eventlog.Span{{First: 1, Last: l.last}}, nil
}

// Feed implements eventlog.ChangeFeed.
func (l *Log) Feed(ctx context.Context, _ int, from uint64) iter.Seq2[eventlog.Change, error] {
	return func(yield func(eventlog.Change, error) bool) {
		for {
			fed, changed, err := l.behind(from)
			if err != nil {
				yield(eventlog.Change{}, err)
				return
			}
			for _, f := range fed {
				if ctx.Err() != nil {
					break
				}
				if !yield(f, nil) {
					return
				}
				from = f.Sequence
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(eventlog.Change{}, context.Cause(ctx))
				return
			}
		}
	}
}

// behind returns the records after a position, and a channel that is closed
// when there is more.
func (l *Log) behind(from uint64) ([]eventlog.Change, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, eventlog.ErrClosed
	}
	if from > l.last {
		return nil, nil, &eventlog.CursorAheadError{Cursor: from, Head: l.last}
	}
	bySequence := func(p place, seq uint64) int { return int(int64(p.sequence) - int64(seq)) }
	at, _ := slices.BinarySearchFunc(l.order, from+1, bySequence)
	fed := make([]eventlog.Change, 0, len(l.order)-at)
	for _, p := range l.order[at:] {
		records := l.sessions[p.session]
		i, found := slices.BinarySearchFunc(records, p.sequence, func(r eventlog.Record, seq uint64) int {
			return int(int64(r.Sequence) - int64(seq))
		})
		if !found {
			continue // erased
		}
		f := eventlog.Change{Session: p.session, Linked: true, Record: records[i]}
		if i > 0 {
			f.Previous = records[i-1].Sequence
		}
		fed = append(fed, f)
	}
	if from < l.last && (len(fed) == 0 || fed[len(fed)-1].Sequence < l.last) {
		fed = append(fed, eventlog.Change{Record: eventlog.Record{Sequence: l.last}})
	}
	return fed, l.changed, nil
}
