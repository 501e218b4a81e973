package eventlog

import (
	"context"
	"iter"
)

// ChangeFeed is a log with a change feed: it yields the records of all sessions of a partition
// together, for read models. A position is a sequence; each partition has its own.
type ChangeFeed interface {
	Log

	// Identity names the log. A log that was deleted and created again has another
	// identity. When a log gets more partitions, its identity becomes the old one, a
	// space and a suffix.
	Identity(ctx context.Context) (string, error)

	// Spans returns what each partition spans now, as the leader knows it.
	// Errors: ErrUnavailable, ErrClosed.
	Spans(ctx context.Context) ([]Span, error)

	// Feed yields the records of a partition after a position, in order, and
	// waits for more until ctx ends, which is its last error. It reads ahead of its
	// consumer by at most a bounded buffer, and leaves nothing on the server when it
	// ends. If records are gone, it continues after the gap; it yields the last position
	// even if its record is gone. It does not yield records that are in segments only:
	// Read does. It waits a bounded time for a failure to pass, and then ends. Errors:
	// ErrClosed; a *CursorAheadError if the log ends before the position; any
	// other, such as ErrUnavailable, if the feed could not continue.
	Feed(ctx context.Context, partition int, from uint64) iter.Seq2[Change, error]
}

// Span is what a partition spans.
type Span struct {
	// First is the first position that a feed has; a record before it is in
	// segments, or gone. It may be after Last.
	First uint64
	// Last is the last position that was given to a record, which may be gone.
	Last uint64
	// Begins is the first position that the partition can have had; 0 means 1. It is more
	// in a partition that the log got later.
	Begins uint64
}

// Change is a record of a feed. If Session is empty it is only a position: every record up to
// it was yielded.
type Change struct {
	Session string // the root
	// Previous is the sequence of the session's record before this one, 0 if
	// it is the first. It is known if Linked is set: a foreign message does not name it.
	Previous uint64
	Linked   bool
	// Err is why the record's payload could not be read, if it could not.
	Err error
	Record
}
