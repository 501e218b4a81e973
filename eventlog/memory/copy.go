package memory

import (
	"context"
	"iter"

	"github.com/helixd/helixd/eventlog"
)

var _ eventlog.Copier = (*Log)(nil)

// Ends implements eventlog.Copier.
func (l *Log) Ends(context.Context) ([]uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, eventlog.ErrClosed
	}
	return []uint64{l.last}, nil
}

// PartitionOf implements eventlog.Copier.
func (l *Log) PartitionOf(string) int { return 0 }

// Placement implements eventlog.Copier.
func (l *Log) Placement() *eventlog.Placement { return nil }

// Copy implements eventlog.Copier.
func (l *Log) Copy(ctx context.Context, session string, upTo uint64) (floor uint64, records iter.Seq2[eventlog.Copied, error], err error) {
	all, _, err := l.after(session, 0)
	if err != nil {
		return 0, nil, err
	}
	return 0, func(yield func(eventlog.Copied, error) bool) {
		for _, r := range all {
			if err := context.Cause(ctx); err != nil {
				yield(eventlog.Copied{}, err)
				return
			}
			if r.Sequence > upTo || !yield(eventlog.Copied{Record: r}, nil) {
				return
			}
		}
	}, nil
}
