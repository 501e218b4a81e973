package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Retention says what to remove.
type Retention struct {
	// Purge removes records from the log that are in segments and older than
	// PurgeOlderThan. Readers notice nothing.
	Purge          bool
	PurgeOlderThan time.Duration
	// Drop removes segments older than DropOlderThan for good, except each session's last
	// one. A session keeps its state; its history begins at a floor. Memories are kept.
	Drop          bool
	DropOlderThan time.Duration
	// MaxBytes bounds the bytes of the log and its segments; 0: no bound. Above it,
	// everything that can be purged is purged. Then segments are dropped, the oldest
	// first, until the bound is met or no segment can be dropped. Memories count, and are
	// kept. Blobs don't count, and are kept.
	MaxBytes uint64
}

// Retained is the result of a retention pass.
type Retained struct {
	Purged []eventlog.Purged `json:"purged"`
	// Dropped has the new floors of the sessions that lost segments.
	Dropped map[string]uint64 `json:"dropped"`
	// Bytes is how many bytes the log and its segments have now.
	Bytes uint64 `json:"bytes"`
}

// Retain applies a retention to all sessions. Appends have priority: it pauses between
// two sessions. The error is a *eventlog.ValidationError if the log has no segments, of
// which retention removes records.
func (s *Store) Retain(ctx context.Context, r Retention) (done Retained, err error) {
	done = Retained{Purged: []eventlog.Purged{}, Dropped: map[string]uint64{}}
	archive, ok := s.log.(eventlog.Archive)
	if !ok || s.opts.Folds == nil {
		return done, &eventlog.ValidationError{Reason: "this log has no segments"}
	}
	if r.Purge {
		if err := purge(ctx, archive, r.PurgeOlderThan, &done); err != nil {
			return done, err
		}
	}
	if r.Drop {
		if err := s.dropAll(ctx, archive, time.Now().Add(-r.DropOlderThan), &done); err != nil {
			return done, err
		}
	}
	if done.Bytes, err = archive.Size(ctx); err != nil || r.MaxBytes == 0 || done.Bytes <= r.MaxBytes {
		return done, err
	}
	return done, s.shrink(ctx, archive, r.MaxBytes, &done)
}

// shrinkSteps is in how many steps of age segments are dropped to reduce the size.
const shrinkSteps = 16

// shrink removes the oldest segments until the log has at most that many bytes.
func (s *Store) shrink(ctx context.Context, archive eventlog.Archive, most uint64, done *Retained) (err error) {
	if err := purge(ctx, archive, 0, done); err != nil {
		return err
	}
	now := time.Now()
	oldest, err := oldestDroppable(ctx, archive, now)
	if err != nil {
		return err
	}
	for i := range time.Duration(shrinkSteps) {
		if done.Bytes, err = archive.Size(ctx); err != nil || done.Bytes <= most || oldest.IsZero() {
			return err
		}
		before := oldest.Add(now.Sub(oldest) / shrinkSteps * (i + 1))
		if i == shrinkSteps-1 {
			before = now
		}
		if err := s.dropAll(ctx, archive, before, done); err != nil {
			return err
		}
	}
	done.Bytes, err = archive.Size(ctx)
	return err
}

// oldestDroppable returns when the oldest segment was written that may be dropped; zero:
// there is none. Segments that are never dropped don't count, since they say nothing
// about the age of the others.
func oldestDroppable(ctx context.Context, archive eventlog.Archive, before time.Time) (oldest time.Time, err error) {
	for session, err := range droppable(ctx, archive, before) {
		if err != nil {
			return oldest, err
		}
		began := time.Now()
		at, err := archive.OldestSegment(ctx, session)
		if err != nil {
			return oldest, fmt.Errorf("session %q: %w", session, err)
		}
		if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
		eventlog.Yield(ctx, began)
	}
	return oldest, nil
}

// droppable yields the sessions that may have segments from before a time which may be
// dropped. Memory logs are not history and are left out.
func droppable(ctx context.Context, archive eventlog.Archive, before time.Time) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for session, err := range archive.Droppable(ctx, before) {
			if !eventlog.IsMemoryLog(session) && !yield(session, err) {
				return
			}
		}
	}
}

func purge(ctx context.Context, archive eventlog.Archive, olderThan time.Duration, done *Retained) error {
	purged, err := archive.Purge(ctx, eventlog.PurgeOptions{OlderThan: olderThan})
	done.Purged = append(done.Purged, purged...)
	return err
}

// dropAll drops the segments of all sessions that are older than a time.
func (s *Store) dropAll(ctx context.Context, archive eventlog.Archive, before time.Time, done *Retained) error {
	for session, err := range droppable(ctx, archive, before) {
		if err != nil {
			return err
		}
		began := time.Now()
		n, err := archive.SealedBefore(ctx, session, before)
		if err == nil && n > 0 {
			err = s.drop(ctx, archive, session, n, done.Dropped)
		}
		if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) { // erased meanwhile
			return fmt.Errorf("session %q: %w", session, err)
		}
		eventlog.Yield(ctx, began)
	}
	return nil
}

// drop removes a session's records below n after it has saved the state at n: from then
// on only that fold has their content.
func (s *Store) drop(ctx context.Context, archive eventlog.Archive, session string, n uint64, floors map[string]uint64) error {
	before, err := archive.Trim(ctx, session, 0) // ends a pass that was interrupted
	if err != nil {
		return err
	}
	if _, some, err := archive.Trimmable(ctx, session, n-1); err != nil || !some {
		return err // nothing to remove, so no state to save
	}
	t, err := s.At(ctx, session, n)
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed {
		return nil // already dropped up to there
	}
	if err != nil {
		return err
	}
	var last eventlog.Record
	for r, err := range s.log.Read(ctx, session, n-1, n) {
		if err != nil {
			return err
		}
		last = r
	}
	if saved, err := s.savedAt(ctx, session, last); err != nil {
		return err
	} else if !saved {
		s.save(ctx, session, JSON, t, last)
		if saved, err = s.savedAt(ctx, session, last); err != nil || !saved {
			return err // it can't be saved, such as one that is too large: its records stay
		}
	}
	floor, err := archive.Trim(ctx, session, n-1)
	if err == nil && floor > before {
		floors[session] = floor
	}
	return err
}

// savedAt reports whether this version's state at a record is saved in JSON, and can be
// read. If so it is not saved once more: if another pass has dropped the records meanwhile,
// nothing else has the state.
func (s *Store) savedAt(ctx context.Context, session string, last eventlog.Record) (bool, error) {
	saved, err := s.opts.Folds.Nearest(ctx, session, last.Sequence, JSON)
	if err != nil || saved == nil || saved.Sequence != last.Sequence || saved.Version != projector.Version || saved.Digest != digest(last) {
		return false, err
	}
	_, err = saved.tree()
	return err == nil, nil
}
