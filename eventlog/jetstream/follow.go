package jetstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/eventlog"
)

const (
	// followBuffer is how many messages a follower may leave unread. More are
	// dropped and read from the log again.
	followBuffer = 256
	// idleCheck is how long a follower hears nothing before it asks for the
	// head: a last message that was lost on the way leaves no gap to be seen.
	idleCheck = 1500 * time.Millisecond
)

// Follow implements eventlog.Log: subscribe, catch up from the log, join by
// sequence. A message names its predecessor, so a loss is seen and read from
// the log.
func (l *Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		if err := l.follow(ctx, session, from, yield); err != nil && !errors.Is(err, errStopped) {
			yield(eventlog.Record{}, err)
		}
	}
}

// errStopped tells that the consumer wants no more.
var errStopped = errors.New("jetstream: stopped")

func (l *Log) follow(ctx context.Context, session string, from uint64, yield func(eventlog.Record, error) bool) error {
	if _, _, err := l.place(session); err != nil {
		return err
	}
	live := make(chan *nats.Msg, followBuffer)
	sub, err := l.nc.ChanSubscribe(LiveSubject(session), live)
	if err != nil {
		return fmt.Errorf("jetstream: follow: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	if err := l.flush(ctx); err != nil {
		return err
	}
	last := from
	catchUp := func() error {
		for r, err := range l.Read(ctx, session, last, 0) {
			if err != nil {
				return err
			}
			if !yield(r, nil) {
				return errStopped
			}
			last = r.Sequence
		}
		return nil
	}
	if err := catchUp(); err != nil {
		return err
	}
	idle := time.NewTimer(idleCheck)
	defer idle.Stop()
	dropped := 0
	for {
		// The client drops what comes in while the buffer is full. If these
		// were the last messages, no later one shows the gap.
		if len(live) == 0 {
			if n, err := sub.Dropped(); err == nil && n != dropped {
				dropped = n
				if err := catchUp(); err != nil {
					return err
				}
			}
		}
		select {
		case m := <-live:
			r, err := recordOf(m.Header, m.Data)
			if err != nil {
				return err
			}
			switch {
			case r.Sequence <= last:
			case lastSequence(m.Header) != last: // a gap
				if err := catchUp(); err != nil {
					return err
				}
			default:
				if !yield(r, nil) {
					return nil
				}
				last = r.Sequence
			}
		case <-idle.C:
			head, err := l.Head(ctx, session)
			if err == nil && head > last {
				err = catchUp()
			}
			if err != nil {
				return err
			}
		case <-l.closed:
			return eventlog.ErrClosed
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		idle.Reset(idleCheck)
	}
}

// flush returns when the server knows the subscription.
func (l *Log) flush(ctx context.Context) error {
	try, cancel := context.WithTimeout(ctx, answerTimeout) // the client insists on a deadline
	defer cancel()
	if err := l.nc.FlushWithContext(try); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("jetstream: follow: %w", err)
	}
	return nil
}
