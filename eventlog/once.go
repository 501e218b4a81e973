package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Pauses between tries to find out what became of an append.
const (
	minRetryPause = 2 * time.Millisecond
	maxRetryPause = 250 * time.Millisecond
)

// AppendOnce appends entries after expected exactly once, even if answers
// are lost, and returns the last one's sequence. writer must be unique
// for all time: it is how the entries are recognised. It is for producers
// that hold no claim.
//
// Errors: as [Log.Append]; a *ConflictError means that another writer was
// first and that none of the entries was or will be written;
// ErrSessionNotFound means the same for a session that was erased, ErrErasing for
// one whose erasure is not finished, if expected is 0. ErrOutcomeUnknown is left only when
// ctx ends, or beside ErrErasing.
func AppendOnce(ctx context.Context, log Log, session, writer string, expected uint64, entries []Entry) (uint64, error) {
	last, _, err := AppendOrFind(ctx, log, session, writer, expected, entries)
	return last, err
}

// AppendOrFind is AppendOnce, and reports whether it has found the entries: an earlier try
// with this writer had appended them, and may have given them other contents.
func AppendOrFind(ctx context.Context, log Log, session, writer string, expected uint64, entries []Entry) (last uint64, found bool, err error) {
	frozen := make([]Entry, len(entries))
	for i, e := range entries {
		e.Writer, e.Ordinal = writer, uint64(i)+1
		frozen[i] = e
	}
	return appendOrFind(ctx, log, session, expected, frozen)
}

// appendOrFind sends the same bytes with the same expectation until it knows
// what became of them. Since the expectation can be met once only, at most
// one of the tries ever succeeds.
func appendOrFind(ctx context.Context, log Log, session string, expected uint64, frozen []Entry) (uint64, bool, error) {
	unsure := false
	for pause := minRetryPause; ; pause = min(2*pause, maxRetryPause) {
		last, err := log.Append(ctx, session, expected, frozen)
		if err == nil {
			return last, false, nil
		}
		refused, conflict := errors.AsType[*ConflictError](err)
		if !conflict && !errors.Is(err, ErrOutcomeUnknown) {
			if unsure { // an earlier try may still arrive
				err = fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
			}
			return 0, false, err
		}
		unsure = unsure || !conflict
		first, rerr := firstAfter(ctx, log, session, expected)
		ahead, isAhead := errors.AsType[*CursorAheadError](rerr)
		_, trimmed := errors.AsType[*TrimmedError](rerr)
		switch {
		case errors.Is(rerr, ErrSessionNotFound) && expected > 0: // erased, which has a tombstone
			return 0, false, rerr
		case errors.Is(rerr, ErrSessionNotFound) && conflict && refused.Head > 0: // only a tombstone is there
			if unsure { // an earlier try may arrive when that is gone
				return 0, false, fmt.Errorf("%w: %w", ErrOutcomeUnknown, ErrErasing)
			}
			return 0, false, ErrErasing
		case isAhead && !unsure && refused.Head < expected: // nothing is under way that would bring the head there
			return 0, false, &ConflictError{Head: ahead.Head}
		case trimmed && !unsure: // retention has removed what followed
			return 0, false, &ConflictError{Head: refused.Head}
		case rerr != nil || first.Sequence == 0: // not known yet, or still free
		case first.Writer == frozen[0].Writer && first.Ordinal == frozen[0].Ordinal && first.Origin == frozen[0].Origin:
			return first.Sequence + uint64(len(frozen)) - 1, true, nil
		default:
			return 0, false, &ConflictError{Head: first.Sequence}
		}
		if err := Sleep(ctx, pause); err != nil {
			return 0, false, fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		}
	}
}

// firstAfter returns the first record after n, or the zero Record.
func firstAfter(ctx context.Context, log Log, session string, n uint64) (Record, error) {
	for r, err := range log.Read(ctx, session, n, 0) {
		return r, err
	}
	return Record{}, nil
}

// Sleep waits for d. If ctx ends first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
