package store

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// farSequences is over how many sequences, some block of small records, a read
// takes what the log has record by record from behind, see the package's
// "Far apart".
const farSequences = 10_000

// backwards yields what the log has of a session behind from, newest first,
// beginning with the record at to. It ends where a record does not follow one
// behind from, with errGap if that one is not in the log, and without an error
// where to is not the session's or a record names none.
func (l *Store) backwards(ctx context.Context, session string, from, to uint64) iter.Seq2[wire.Stored, error] {
	return func(yield func(wire.Stored, error) bool) {
		stream, subject, err := l.Place(session)
		for at := to; err == nil && at > from; {
			var m wire.Message
			if m, err = l.GetAt(ctx, stream, at); err != nil || m.Subject != subject {
				break
			}
			r := wire.StoredAt(m.Subject, m.Sequence, m.At, m.Header, m.Data)
			if !yield(r, nil) || !r.Linked {
				return
			}
			at = r.Previous
		}
		if errors.Is(err, link.ErrNoMessage) {
			err = errGap
		}
		if err != nil {
			yield(wire.Stored{}, err)
		}
	}
}

// lastRecords returns the last records of the log behind from, up to the one at
// to, oldest first: a page of them at most. If they are not all, the first
// one's previous tells where the others end; so does errGap, which it returns
// with them.
func (l *Store) lastRecords(ctx context.Context, session string, from, to uint64) (records []wire.Stored, err error) {
	size := 0
	for r, rerr := range l.backwards(ctx, session, from, to) {
		if err = rerr; err != nil || !r.Linked {
			break
		}
		records, size = append(records, r), size+len(r.Payload)
		if len(records) == link.PageRecords || size >= link.PageBytes {
			break
		}
	}
	slices.Reverse(records)
	return records, err
}
