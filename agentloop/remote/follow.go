package remote

import (
	"context"
	"fmt"
	"iter"
	"time"
)

// Defaults and limit of [FollowOptions].
const (
	DefaultStreamRetries   = 3
	MaxStreamRetries       = 50
	DefaultStreamRetryBase = 100 * time.Millisecond
)

// FollowOptions say how often [Follow] connects again.
type FollowOptions struct {
	// Retries is how many attempts in a row may fail, that is without a new
	// chunk; 0: 3, negative: none, at most 50.
	Retries int
	// RetryBase is the wait before the first attempt, doubled each time up to
	// 30 s; 0: 100 ms.
	RetryBase time.Duration
}

// Follow yields the events of a session after sequence from, across
// connections that drop, until an EndEvent or an ErrorEvent. Else an error is
// last: what the server refuses, [ErrOutOfOrder], the cause of a ctx that has
// ended, or, when the retries are used up, what the last attempt failed with.
//
// Between two connections it asks for the session's status. If that has
// completed or failed and there is nothing more to read, the status is the
// last event. Chunks that were yielded before are not yielded again.
func Follow(ctx context.Context, t Transport, sessionID string, from uint64, o FollowOptions) iter.Seq2[Event, error] {
	switch {
	case o.Retries == 0:
		o.Retries = DefaultStreamRetries
	case o.Retries < 0:
		o.Retries = 0
	}
	o.Retries = min(o.Retries, MaxStreamRetries)
	if o.RetryBase <= 0 {
		o.RetryBase = DefaultStreamRetryBase
	}
	return func(yield func(Event, error) bool) {
		f := follower{
			t: t, session: sessionID, seen: from, yield: yield, retries: Retries{base: o.RetryBase, most: o.Retries},
		}
		if err := f.run(ctx); err != nil {
			yield(nil, err)
		}
	}
}

// follower is one iteration of Follow.
type follower struct {
	t       Transport
	session string
	seen    uint64  // the last sequence that was yielded
	retries Retries // of attempts without a new chunk
	yield   func(Event, error) bool
}

// run returns nil when the last event was yielded or the consumer has left.
func (f *follower) run(ctx context.Context) error {
	err := f.connection(ctx)
	for err != nil {
		if !Retryable(err) {
			return err
		}
		if err := f.retries.Wait(ctx, err); err != nil {
			return err
		}
		var last Event
		last, err = f.settled(ctx)
		switch {
		case last != nil:
			f.yield(last, nil)
			return nil
		case err == nil:
			err = f.connection(ctx)
		}
	}
	return nil
}

// connection yields the events of one connection.
func (f *follower) connection(ctx context.Context) error {
	var before uint64 // of this connection
	for e, err := range f.t.Stream(ctx, f.session, f.seen) {
		if err != nil {
			return err
		}
		if c, ok := e.(ChunkEvent); ok {
			if c.Sequence < before {
				return fmt.Errorf("%w: %d comes after %d", ErrOutOfOrder, c.Sequence, before)
			}
			before = c.Sequence
			if c.Sequence <= f.seen {
				continue
			}
			f.seen = c.Sequence
			f.retries.Reset()
		}
		if !f.yield(e, nil) || IsLast(e) {
			return nil
		}
	}
	return fmt.Errorf("%w: it has no end", ErrStreamDropped)
}

// settled returns the last event if the session is finished and all of its
// chunks were seen. A session that waits is not over: others may resume it.
func (f *follower) settled(ctx context.Context) (Event, error) {
	s, err := f.t.Status(ctx, f.session)
	if err != nil || s.LatestSequence > f.seen {
		return nil, err
	}
	switch s.Status {
	case StatusCompleted:
		return EndEvent{Output: s.Output, State: s.State}, nil
	case StatusFailed:
		return ErrorEvent{Error: s.Error}, nil
	}
	return nil, nil
}
