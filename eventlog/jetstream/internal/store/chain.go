package store

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
)

// farSequences is over how many sequences, about a block of small records, a read takes
// the log's part record by record backwards; see "Records far apart" in package
// jetstream.
const farSequences = 10_000

// backwards yields the records after from that the log has of a session, newest first,
// beginning with the record at to. If a record does not follow one after from, it ends,
// with errGap if the predecessor is not in the log. If to is not a record of the session,
// or a record names no predecessor, it ends without an error.
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

// lastRecords returns the last records of the log after from, up to the one at to, oldest
// first, at most a page. If they are not all, the first one's Previous is the end of the
// others; the same holds with errGap, which it returns with them.
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
