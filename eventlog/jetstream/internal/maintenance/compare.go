package maintenance

import (
	"context"
	"fmt"
	"iter"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// compare checks that the session's segments have, unchanged, every record that the log
// has below a sequence, and returns how many those are. The error is ErrDamaged if they
// differ.
func (l *Maintenance) compare(ctx context.Context, session string, below uint64) (int, error) {
	records, err := l.logRecords(ctx, session)
	if err != nil {
		return 0, err
	}
	count := 0
	var next func() (wire.Stored, error, bool)
	for r, err := range records {
		if err != nil {
			return count, err
		}
		if r.Sequence >= below {
			break
		}
		if next == nil {
			var stop func()
			next, stop = iter.Pull2(l.segmentRecords(ctx, session, r.Sequence-1))
			defer stop()
		}
		s, err, ok := next()
		if err != nil {
			return count, err
		}
		if !ok || !wire.Same(r, s) {
			// Unless the session is being erased: its records go first.
			if there, err := l.InLog(ctx, session, r.Sequence); err != nil || !there {
				return count, err
			}
			return count, fmt.Errorf("%w: segments and log differ at sequence %d", wire.ErrDamaged, r.Sequence)
		}
		count++
	}
	return count, nil
}

// logRecords yields the records that the log stream itself has of a session;
// it does not check for gaps.
func (l *Maintenance) logRecords(ctx context.Context, session string) (iter.Seq2[wire.Stored, error], error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return nil, err
	}
	return func(yield func(wire.Stored, error) bool) {
		for from := uint64(1); ; {
			messages, err := l.GetBatch(ctx, stream, subject, from, link.PageRecords)
			if err != nil {
				yield(wire.Stored{}, err)
				return
			}
			if len(messages) == 0 {
				return
			}
			for _, m := range messages {
				r, err := wire.RecordOf(m.Header, m.Data)
				if !yield(r, err) || err != nil {
					return
				}
				from = r.Sequence + 1
			}
		}
	}, nil
}

// segmentRecords yields the records after from that the segments have of a session.
func (l *Maintenance) segmentRecords(ctx context.Context, session string, from uint64) iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		stopped := false
		err := l.ReadSegments(ctx, session, from, ^uint64(0), func(r wire.Stored) bool {
			stopped = !yield(r, nil)
			return !stopped
		})
		if err != nil && !stopped {
			yield(wire.Stored{}, err)
		}
	}
}
