package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Retention says what may be removed.
type Retention struct {
	// Purge removes records from the log that are in segments, older than
	// PurgeOlderThan. Nothing changes for readers.
	Purge          bool
	PurgeOlderThan time.Duration
	// Drop removes segments that are older than DropOlderThan, for good, but
	// for each session's last one. A session's state stays; its history
	// begins at a floor.
	Drop          bool
	DropOlderThan time.Duration
}

// Retained tells what retention did.
type Retained struct {
	Purged []eventlog.Purged `json:"purged"`
	// Dropped holds the new floors of sessions that lost segments.
	Dropped map[string]uint64 `json:"dropped"`
}

// ErrNoArchive: the log keeps no segments, so nothing can be removed.
var ErrNoArchive = errors.New("snapshot: the log has no segments")

// Retain applies a retention to all sessions.
func (s *Store) Retain(ctx context.Context, r Retention) (Retained, error) {
	done := Retained{Purged: []eventlog.Purged{}, Dropped: map[string]uint64{}}
	archive, ok := s.log.(eventlog.Archive)
	if !ok || s.opts.Folds == nil {
		return done, ErrNoArchive
	}
	if r.Purge {
		purged, err := archive.Purge(ctx, eventlog.PurgeOptions{OlderThan: r.PurgeOlderThan})
		done.Purged = append(done.Purged, purged...)
		if err != nil {
			return done, err
		}
	}
	if !r.Drop {
		return done, nil
	}
	before := time.Now().Add(-r.DropOlderThan)
	for session, err := range s.log.Sessions(ctx) {
		if err != nil {
			return done, err
		}
		n, err := archive.SealedBefore(ctx, session, before)
		if err == nil && n > 0 {
			err = s.drop(ctx, archive, session, n, done.Dropped)
		}
		if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) { // erased meanwhile
			return done, fmt.Errorf("session %q: %w", session, err)
		}
	}
	return done, nil
}

// drop removes a session's records below n, after the state at n was saved:
// from then on only that fold knows what they said.
func (s *Store) drop(ctx context.Context, archive eventlog.Archive, session string, n uint64, floors map[string]uint64) error {
	t, err := s.At(ctx, session, n)
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed {
		return nil // so far it has been dropped before
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
	s.save(ctx, session, t, last)
	saved, err := s.opts.Folds.Nearest(ctx, session, n)
	if err != nil {
		return err
	}
	if saved == nil || saved.Sequence != n || saved.Version != projector.Version || saved.Digest != digest(last) {
		return nil // too large to be saved: its records stay
	}
	before, err := archive.Trim(ctx, session, 0)
	if err != nil {
		return err
	}
	floor, err := archive.Trim(ctx, session, n-1)
	if err == nil && floor > before {
		floors[session] = floor
	}
	return err
}
