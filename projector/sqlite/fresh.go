package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Fresh implements readmodel.Models.
func (m *Models) Fresh(ctx context.Context) readmodel.Fresh {
	ends, err := m.feed.Spans(ctx)
	m.mu.Lock()
	fresh := m.state.fresh(ends, err)
	m.mu.Unlock()
	fresh.Parked, _ = tally(ctx, m, func(ctx context.Context, tx *sql.Tx) (n int, err error) { // if this fails, so do the other counts, which report it
		return n, tx.QueryRowContext(ctx, "SELECT count(*) FROM parked").Scan(&n)
	})
	return fresh
}

// fresh compares the state with the log's ends.
func (s *state) fresh(ends []eventlog.Span, err error) readmodel.Fresh {
	f := readmodel.Fresh{Rebuilding: s.rebuilding, Problem: s.problem}
	if err != nil {
		f.Problem = err.Error()
		return f
	}
	for p, end := range ends {
		at := max(end.Begins, 1) - 1
		if p < len(s.positions) {
			at = s.positions[p]
		}
		if end.Last > at {
			f.Lag += end.Last - max(at, end.First-1)
			if end.Last < end.First { // all of it is in segments
				f.Lag = max(f.Lag, 1)
			}
		}
	}
	f.Current = s.positions != nil && f.Lag == 0 && !s.untidy && !s.rebuilding
	if f.Current {
		f.Problem = ""
	}
	return f
}

const (
	// largeRecord is the size of a payload from which on folding its record takes long. A
	// query waits for such a record only for largeShare of the patience, since it may be
	// another tenant's.
	largeRecord = 256 << 10
	largeShare  = 20
)

// await waits until the rows hold what the log held when it was called, at most for the
// patience. It also waits for a file to exist.
func (m *Models) await(ctx context.Context) readmodel.Fresh {
	ctx, cancel := context.WithTimeout(ctx, m.opts.Patience)
	defer cancel()
	began := time.Now()
	ends, err := m.feed.Spans(ctx)
	large := m.opts.Patience / largeShare
	look := time.NewTicker(large/4 + 1)
	defer look.Stop()
	for {
		m.mu.Lock()
		fresh, moved, open := m.state.fresh(ends, err), m.moved, m.state.positions != nil
		m.mu.Unlock()
		if fresh.Current || err != nil && open {
			return fresh
		}
		select {
		case m.kick <- struct{}{}:
		default:
		}
		for waits := true; waits; {
			select {
			case <-moved:
				waits = false
			case <-look.C:
				if open && !fresh.Rebuilding && m.large.Load() && time.Since(began) >= large {
					return fresh
				}
			case <-ctx.Done():
				return fresh
			}
		}
	}
}

// ask answers a query from one state of the rows.
func ask[T any](ctx context.Context, m *Models, answer func(ctx context.Context, tx *sql.Tx) (T, error)) (readmodel.Answer[T], error) {
	fresh := m.await(ctx)
	value, err := look(ctx, m, answer)
	return readmodel.Answer[T]{Value: value, Fresh: fresh}, err
}

// answerTimeout bounds one query, since only a few can run at once.
const answerTimeout = 15 * time.Second

var errTooLong = errors.New("the answer takes too long")

// look is ask without waiting.
func look[T any](ctx context.Context, m *Models, answer func(ctx context.Context, tx *sql.Tx) (T, error)) (T, error) {
	return lookBy(ctx, m, func(f *file) *sql.DB { return f.read }, answerTimeout, answer)
}

// tally is look for queries that admit requests, which must not wait for listings.
func tally[T any](ctx context.Context, m *Models, answer func(ctx context.Context, tx *sql.Tx) (T, error)) (T, error) {
	return lookBy(ctx, m, func(f *file) *sql.DB { return f.count }, answerTimeout, answer)
}

// lookBy is look with the given connections and timeout. The timeout is of the context that
// answer gets: a query with another one is not interrupted.
func lookBy[T any](ctx context.Context, m *Models, of func(*file) *sql.DB, most time.Duration, answer func(ctx context.Context, tx *sql.Tx) (T, error)) (value T, err error) {
	m.use.RLock()
	defer m.use.RUnlock()
	if m.file == nil {
		return value, readmodel.ErrUnavailable
	}
	caller := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, most, errTooLong)
	defer cancel()
	tx, err := of(m.file).BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err == nil {
		defer tx.Rollback() //nolint:errcheck // the transaction only reads
		value, err = answer(ctx, tx)
	}
	if err == nil {
		return value, nil
	}
	if caller.Err() != nil {
		return value, context.Cause(caller)
	}
	if ctx.Err() != nil {
		return value, fmt.Errorf("%w: %w", readmodel.ErrUnavailable, errTooLong)
	}
	if _, ok := errors.AsType[*readmodel.QueryError](err); ok {
		return value, err
	}
	if err = metByReader(err); errors.Is(err, errDiscard) {
		select {
		case m.bad <- err:
		default:
		}
	}
	return value, fmt.Errorf("%w: %w", readmodel.ErrUnavailable, err)
}
