package eventlog

import (
	"context"
	"iter"
)

// Feed is a log that tells the records of all its sessions together, for what
// is derived from all of them. A position is a sequence; each partition has
// its own.
type Feed interface {
	Log

	// Identity names the log: one that was made again has another. A log that has got
	// more partitions has its name from before, a space, and more.
	Identity(ctx context.Context) (string, error)

	// Spans returns what each partition spans now, as the leader knows it.
	// Errors: ErrUnavailable, ErrClosed.
	Spans(ctx context.Context) ([]Span, error)

	// Feed yields what a partition holds behind a position, in order, and
	// waits for more until ctx ends, which is its last error. It does not run
	// ahead of who reads it by more than a bounded buffer, and keeps nothing
	// on the server when it has ended. Where records are gone, it goes on
	// behind the gap; the last position is told even if its record is gone.
	// What lies in segments only is not fed: Read has it. What passes by itself
	// it waits for; what does not within a bounded time ends it. Errors:
	// ErrClosed, a *CursorAheadError if the log ends before the position; any
	// other, ErrUnavailable among them, is of a feed that could not get on.
	Feed(ctx context.Context, partition int, from uint64) iter.Seq2[Fed, error]
}

// Span is what a partition spans.
type Span struct {
	// First is the first position that a feed has; a record before it is in
	// segments, or gone. It may be behind Last.
	First uint64
	// Last is the last position that was given to a record, which may be gone.
	Last uint64
	// Begins is the first position that the partition can have had; 0 means 1. It is more
	// in a partition that the log got later.
	Begins uint64
}

// Fed is a record of a feed; or, without a session, just a position: nothing
// of a session is there up to it that was not fed.
type Fed struct {
	Session string // the root
	// Previous is the sequence of the session's record before this one, 0 if
	// it is the first; if Linked, since foreign messages don't tell.
	Previous uint64
	Linked   bool
	// Err is why the record's payload could not be read, if it could not.
	Err error
	Record
}
