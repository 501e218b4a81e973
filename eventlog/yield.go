package eventlog

import (
	"context"
	"sync"
	"time"
)

// Yield has w send nothing until release is called, or until limit has passed,
// so that somebody else's append is not overtaken for ever: a comparison of
// theirs fails as long as one of w's is always in flight. It returns when what
// is in flight has been answered. What w is given meanwhile waits, and goes
// behind what was written.
//
// release may be called more than once. The error is ctx's, or ErrWriterBroken
// or whatever else has ended w; then there is nothing to release.
func (w *Writer) Yield(ctx context.Context, limit time.Duration) (release func(), err error) {
	if err := w.queue.ended(); err != nil {
		return nil, err
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	end := sync.OnceFunc(w.endTurn)
	timer := time.AfterFunc(limit, end)
	return func() {
		timer.Stop()
		end()
	}, nil
}

// awaitTurn waits until nobody is let pass, and observes what they wrote.
func (w *Writer) awaitTurn(ctx context.Context) error {
	select {
	case w.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case w.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := w.catchUp(ctx); err != nil {
		w.endTurn()
		return err
	}
	return nil
}

func (w *Writer) endTurn() { <-w.turn }
