package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// CursorError returns what is wrong with a cursor that is beyond what its caller knows of a
// session: a *[CursorAheadError] only if the log is sure that the session ends before it.
// A server that was cut off from the others for a moment knows less than they have
// acknowledged. Errors: also as [Log.Read]; ErrUnavailable if the log can't say yet, or
// if the session has reached the cursor meanwhile.
func CursorError(ctx context.Context, log Log, session string, cursor uint64) error {
	for _, err := range log.Read(ctx, session, cursor, 0) {
		if err != nil {
			return err
		}
		break
	}
	return fmt.Errorf("%w: the records read so far end before sequence %d", ErrUnavailable, cursor)
}

// After yields the records after head, the sequence of a record that the
// caller has read, or 0. Unlike [Log.Read] from there it proves that they
// follow that record: if the session was erased since, its error is
// ErrSessionNotFound, whether or not the id is in use again. Errors: as
// [Log.Read].
func After(ctx context.Context, log Log, session string, head uint64) iter.Seq2[Record, error] {
	if head == 0 {
		return log.Read(ctx, session, 0, 0)
	}
	return func(yield func(Record, error) bool) {
		known := false
		for r, err := range log.Read(ctx, session, head-1, 0) {
			// A floor is the sequence of a record of the session that is there.
			// Sequences are never used again, so that it began before head.
			if trimmed, ok := errors.AsType[*TrimmedError](err); ok && !known && trimmed.Floor <= head {
				for r, err := range log.Read(ctx, session, head, 0) {
					if !yield(r, err) || err != nil {
						return
					}
				}
				return
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
			if !known {
				if known = true; r.Sequence != head {
					yield(Record{}, ErrSessionNotFound)
					return
				}
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
		if !known { // Read takes head-1 for a cursor that is not ahead
			yield(Record{}, &CursorAheadError{Cursor: head, Head: head - 1})
		}
	}
}
