package eventlog

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Limits of what waits in a [Writer] in addition to the append in flight. A Write
// waits while it would exceed one of them. A Write that is larger than a limit waits
// until the buffer is empty.
const (
	MaxQueuedRecords = 4096
	MaxQueuedBytes   = 1 << 20 // of payloads
)

// sendBuffer holds the waiting calls of a writer, in order, and the state of the writer.
type sendBuffer struct {
	parent  context.Context // of all that is in flight
	work    func()          // empties the buffer
	flusher sync.WaitGroup  // the goroutine or Append that does so

	mu             sync.Mutex
	busy           bool // work is running
	writes         []*pendingWrite
	few            [4]*pendingWrite // memory for calls, while they are few
	records, bytes int
	room           chan struct{}           // closed when calls leave; nil: no caller waits
	flight         context.Context         // of the append in flight, and of later ones until it is aborted
	abort          context.CancelCauseFunc // ends flight
	fatal          error                   // every call fails with it
	failed         error                   // the first of Writes that no Flush has returned yet
}

// pendingWrite is one call of Append or Write; without entries, of Flush or Sync.
type pendingWrite struct {
	entries []Entry
	bytes   int
	written bool          // by Write: no caller waits
	sync    bool          // what others have written is observed
	still   func() bool   // whether it is still to be written; nil: it is
	done    chan struct{} // closed when it is answered; nil: no caller waits for that
	err     error         // the answer

	// The buffer's lock guards these.
	answered bool
	taken    bool  // it is in a batch
	held     bool  // in one of whose calls another is in flight
	left     error // why its caller does not want to wait for it any more

	// Memory for what a call with one entry takes.
	one  [1]Entry
	own  writeUnit
	self [1]*pendingWrite
}

// enqueue queues c. If no goroutine empties the buffer, idle is true, and an Append has to
// do it. If there is no room, a Write gets a channel that is closed
// when there may be.
func (q *sendBuffer) enqueue(c *pendingWrite) (idle bool, room <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.endedLocked(); err != nil {
		return false, nil, err
	}
	if c.written {
		if q.failed != nil {
			return false, nil, q.failed
		}
		if q.records > 0 && (q.records+len(c.entries) > MaxQueuedRecords || q.bytes+c.bytes > MaxQueuedBytes) {
			if q.room == nil {
				q.room = make(chan struct{})
			}
			return false, q.room, nil
		}
	}
	q.push(c)
	idle = !q.busy
	q.busy = true
	switch {
	case idle && c.written:
		q.flusher.Go(q.work)
	case idle:
		q.flusher.Add(1)
	case !c.written:
		c.done = make(chan struct{})
	}
	return idle, nil, nil
}

func (q *sendBuffer) push(c *pendingWrite) {
	if len(q.writes) == 0 {
		q.writes = q.few[:0]
	}
	q.writes = append(q.writes, c)
	q.records, q.bytes = q.records+len(c.entries), q.bytes+c.bytes
}

// handOver leaves what waits to the flusher's goroutine.
func (q *sendBuffer) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy = len(q.writes) > 0; q.busy {
		q.flusher.Go(q.work)
	}
}

// mark queues a call without entries after all others; nil if there is
// nothing to wait for.
func (q *sendBuffer) mark() *pendingWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.busy {
		return nil
	}
	c := &pendingWrite{done: make(chan struct{})}
	q.push(c)
	return c
}

// next reports whether there is anything to do, else the flusher ends.
func (q *sendBuffer) next() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.endedLocked(); err != nil {
		for len(q.writes) > 0 {
			q.answer(q.pop(0), err)
		}
	}
	q.busy = len(q.writes) > 0
	return q.busy
}

// dequeue moves the first call to a batch, if it fits.
func (q *sendBuffer) dequeue(b *batch) *pendingWrite {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.writes) == 0 || !b.fits(q.writes[0]) {
		return nil
	}
	c := q.pop(0)
	c.taken = true
	return c
}

func (q *sendBuffer) pop(i int) *pendingWrite {
	c := q.writes[i]
	if i == 0 {
		q.writes[0] = nil
		q.writes = q.writes[1:]
	} else {
		q.writes = slices.Delete(q.writes, i, i+1)
	}
	q.records, q.bytes = q.records-len(c.entries), q.bytes-c.bytes
	q.wake()
	return c
}

// wake has waiting Writes look again.
func (q *sendBuffer) wake() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// leave ends c early. If c may be in flight, the append is aborted, and the flusher
// finds out whether it was written.
func (q *sendBuffer) leave(c *pendingWrite, cause error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case c.answered:
	case c.held:
		c.left = cause
		q.answer(c, cause)
	case c.taken:
		c.left = cause
		q.abort(cause)
	default:
		q.answer(q.pop(slices.Index(q.writes, c)), cause)
	}
}

// hold keeps b's calls from being in flight until each is launched in its own batch.
func (q *sendBuffer) hold(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range b.units {
		for _, c := range u.writes {
			c.held = true
		}
	}
}

// launch returns the context of b's next try, without those of its calls that
// have left: nothing of theirs was or will be written.
func (q *sendBuffer) launch(b *batch) context.Context {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.units = slices.DeleteFunc(b.units, func(u *writeUnit) bool {
		c := u.writes[0] // those of Writes don't leave, others are alone
		if c.left != nil {
			q.answer(c, c.left)
		}
		return c.left != nil
	})
	for _, u := range b.units {
		u.writes[0].held = false // as above
	}
	if q.flight == nil || q.flight.Err() != nil {
		q.flight, q.abort = context.WithCancelCause(q.parent)
	}
	if q.fatal != nil {
		q.abort(q.fatal)
	}
	return q.flight
}

// finish answers the calls of units.
func (q *sendBuffer) finish(err error, units ...*writeUnit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, u := range units {
		for _, c := range u.writes {
			q.answer(c, err)
		}
	}
}

func (q *sendBuffer) answer(c *pendingWrite, err error) {
	if c.answered {
		return
	}
	if c.written && err != nil && q.failed == nil {
		q.failed = err
	}
	c.answered, c.err = true, err
	if c.done != nil {
		close(c.done)
	}
}

// unit returns c as a unit of a batch.
func (c *pendingWrite) unit(entries []Entry) *writeUnit {
	c.self[0] = c
	c.own = writeUnit{writes: c.self[:], entries: entries}
	return &c.own
}

// failure returns why u must not be written, if it is of a Write after one
// that failed.
func (q *sendBuffer) failure(u *writeUnit) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if u.writes[0].written {
		return q.failed
	}
	return nil
}

// tell returns the error of Writes that no Flush has returned yet, else the error that
// ended the writer.
func (q *sendBuffer) tell() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.failed; err != nil {
		q.failed = nil
		return err
	}
	return q.endedLocked()
}

// end makes all waiting and all later calls fail.
func (q *sendBuffer) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fatal == nil {
		q.fatal = err
	}
	if q.abort != nil {
		q.abort(q.fatal)
	}
	q.wake()
}

// ended returns the error that ended the writer.
func (q *sendBuffer) ended() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.endedLocked()
}

func (q *sendBuffer) endedLocked() error {
	if q.fatal == nil && q.parent.Err() != nil {
		q.fatal = fmt.Errorf("%w: %w", ErrWriterBroken, context.Cause(q.parent))
	}
	return q.fatal
}
