// Package retrying wraps a log and repeats appends while the log refuses them.
package retrying

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// refusedPause is how often a run looks whether the log takes appends again.
const refusedPause = 100 * time.Millisecond

// Log is the log as a run sees it: while it refuses appends, as on a full
// disk, a run waits, and continues where it was.
type Log struct{ eventlog.Log }

func (l Log) refuses() bool { return l.Info().Refuses != "" }

// Append implements eventlog.Log. It ends with ctx's error if that ends before
// the log has taken it.
func (l Log) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	for {
		last, err := l.Log.Append(ctx, session, expected, entries)
		if !errors.Is(err, eventlog.ErrRefused) {
			return last, err
		}
		if err := l.rest(ctx); err != nil {
			return 0, err
		}
	}
}

// Read implements eventlog.Log.
func (l Log) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return l.resumed(ctx, from, func(at uint64) iter.Seq2[eventlog.Record, error] { return l.Log.Read(ctx, session, at, to) })
}

// Follow implements eventlog.Log.
func (l Log) Follow(ctx context.Context, session string, from uint64) iter.Seq2[eventlog.Record, error] {
	return l.resumed(ctx, from, func(at uint64) iter.Seq2[eventlog.Record, error] { return l.Log.Follow(ctx, session, at) })
}

// resumed reads on from where a log that can't be reached has left off: one that
// met a full disk may not be readable, either.
func (l Log) resumed(ctx context.Context, at uint64, read func(at uint64) iter.Seq2[eventlog.Record, error]) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for again := true; again; {
			again = false
			refused := l.refuses()
			for r, err := range read(at) {
				away := errors.Is(err, eventlog.ErrUnavailable) || errors.Is(err, eventlog.ErrIncomplete)
				if away && (refused || l.refuses()) && l.rest(ctx) == nil {
					again = true
					break
				}
				if !yield(r, err) || err != nil {
					return
				}
				at = r.Sequence
			}
		}
	}
}

// rest waits until appends are taken again, or for ctx's error.
func (l Log) rest(ctx context.Context) error {
	every := time.NewTicker(refusedPause)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			if !l.refuses() {
				return nil
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// AppendTimeout bounds an append that its run's end has overtaken: what was
// done is still recorded.
const AppendTimeout = 10 * time.Second

// Patience bounds an append: within ends after AppendTimeout in which the log has not
// refused appends. If wanted ends while it does, there is nothing to wait for.
func (l Log) Patience(wanted, within context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(within)
	var mu sync.Mutex // until timer is set
	var timer *time.Timer
	mu.Lock()
	timer = time.AfterFunc(AppendTimeout, func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil { // over
			return
		}
		if l.refuses() && wanted.Err() == nil {
			timer.Reset(AppendTimeout)
			return
		}
		cancel(context.DeadlineExceeded)
	})
	mu.Unlock()
	unwanted := context.AfterFunc(wanted, func() {
		if l.refuses() {
			cancel(context.Cause(wanted))
		}
	})
	return ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		timer.Stop()
		unwanted()
		cancel(nil)
	}
}
