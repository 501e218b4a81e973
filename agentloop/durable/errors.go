package durable

import (
	"errors"
	"fmt"
)

// Errors of requests. Nothing was changed.
var (
	// ErrNotFound: there is no such stream, or it has expired.
	ErrNotFound = errors.New("durable: no such stream")
	// ErrGone: the stream was deleted and remains for its forks, or retention has removed
	// what is asked for.
	ErrGone = errors.New("durable: gone")
	// ErrSourceGone: the stream that is to be forked was deleted.
	ErrSourceGone = errors.New("durable: the source is deleted")
	// ErrExists: the stream exists with another configuration.
	ErrExists = errors.New("durable: exists with another configuration")
	// ErrContentType: the stream has another content type.
	ErrContentType = errors.New("durable: another content type")
	// ErrClosed: nothing can be appended any more.
	ErrClosed = errors.New("durable: closed")
	// ErrSequence: a writer's sequence does not follow the last one.
	ErrSequence = errors.New("durable: the writer's sequence does not follow the last one")
	// ErrOffset: the offset is none of the stream's.
	ErrOffset = errors.New("durable: not an offset of the stream")
	// ErrForkPoint: the fork would leave its source where that has no such place.
	ErrForkPoint = errors.New("durable: the source has no such place")
	// ErrTooManyForks: the stream has as many forks as it may have, or is a fork of a fork
	// too many times.
	ErrTooManyForks = errors.New("durable: too many forks")
	// ErrFirstSeq: a producer's new epoch does not begin with sequence 0.
	ErrFirstSeq = errors.New("durable: a new epoch begins with sequence 0")
	// ErrBusy: others create and delete the stream at the same time.
	ErrBusy = errors.New("durable: the stream is being deleted")
)

// FencedError: the producer has begun a later epoch.
type FencedError struct{ Epoch int64 } // the current one

func (e *FencedError) Error() string {
	return fmt.Sprintf("durable: the producer's epoch is %d", e.Epoch)
}

// GapError: requests of the producer are missing before this one.
type GapError struct{ Expected, Received int64 }

func (e *GapError) Error() string {
	return fmt.Sprintf("durable: the producer's next sequence is %d, not %d", e.Expected, e.Received)
}
