package eventlog

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrSessionNotFound: the session has no records.
	ErrSessionNotFound = errors.New("eventlog: session not found")
	// ErrSessionExists: a session is created that has records.
	ErrSessionExists = errors.New("eventlog: session exists")
	// ErrErasing: the session's erasure has begun and is not finished; nothing was
	// written. Erase again, or wait.
	ErrErasing = errors.New("eventlog: session is being erased")
	// ErrOutcomeUnknown: an append was sent and not answered; it may or may
	// not be in the log, now or later. [Writer] resolves it.
	ErrOutcomeUnknown = errors.New("eventlog: append outcome unknown")
	// ErrSuperseded: another writer has claimed the tree; this one can never
	// write again.
	ErrSuperseded = errors.New("eventlog: writer superseded")
	// ErrWriterBroken: an earlier append ended with an unknown outcome and
	// the writer gave up; claim again.
	ErrWriterBroken = errors.New("eventlog: writer broken")
	// ErrStale: what was to be written was decided on a state that others have
	// changed since; nothing was written.
	ErrStale = errors.New("eventlog: decided on a stale state")
	// ErrStreamEnded: the stream has ended or failed; only a new run
	// re-activates it.
	ErrStreamEnded = errors.New("eventlog: stream ended")
	// ErrTooLarge: a record is larger than the log takes.
	ErrTooLarge = errors.New("eventlog: record too large")
	// ErrIncomplete: a finite read did not reach its target; what was read
	// must not be taken for the whole.
	ErrIncomplete = errors.New("eventlog: read incomplete")
	// ErrDamaged: stored bytes are not what was stored.
	ErrDamaged = errors.New("eventlog: damaged")
	// ErrUnavailable: the log does not answer now, and nothing was written;
	// try again.
	ErrUnavailable = errors.New("eventlog: unavailable")
	// ErrRefused: the log takes no appends now, as [Info].Refuses says, and
	// nothing was written; try again later.
	ErrRefused = errors.New("eventlog: refused")
	// ErrClosed: the log is closed.
	ErrClosed = errors.New("eventlog: closed")
)

// ConflictError says that the session's last sequence is not the expected
// one. Head is the actual one if the log returned it, else 0.
type ConflictError struct{ Head uint64 }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("eventlog: sequence conflict: head is %d", e.Head)
}

// CursorAheadError says that a cursor is beyond the session's head.
type CursorAheadError struct{ Cursor, Head uint64 }

func (e *CursorAheadError) Error() string {
	return fmt.Sprintf("eventlog: cursor %d is ahead of head %d", e.Cursor, e.Head)
}

// TrimmedError says that retention has removed records after a cursor, up
// to Floor: read on from there, or take a snapshot.
type TrimmedError struct{ Cursor, Floor uint64 }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("eventlog: cursor %d is below the floor %d", e.Cursor, e.Floor)
}

// ValidationError says what is wrong with a record or an id. Field is the
// path of the field, empty for the whole.
type ValidationError struct {
	Type, Field, Reason string
}

func (e *ValidationError) Error() string {
	s := e.Reason
	if e.Field != "" {
		s = e.Field + " " + s
	}
	if e.Type != "" {
		s = e.Type + ": " + s
	}
	return s
}

// StreamTruncatedError says to the user of an attached [Reader] that records were
// truncated before the reader had read to the end. Its next read yields the
// records that are left.
type StreamTruncatedError struct {
	Reason ResyncReason
	// TruncatedAtStep is the last step that a clean-up by step has kept, nil
	// for other markers.
	TruncatedAtStep *int
	// AtSequence is the head when the marker was written.
	AtSequence uint64
}

func (e *StreamTruncatedError) Error() string {
	s := fmt.Sprintf("eventlog: stream truncated at sequence %d (%s)", e.AtSequence, e.Reason)
	if e.TruncatedAtStep != nil {
		s += fmt.Sprintf(" after step %d", *e.TruncatedAtStep)
	}
	return s
}
