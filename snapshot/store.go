package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// DefaultSaveEvery is after how many records a fold is saved.
const DefaultSaveEvery = 2000

// StoreOptions configure a store; zero values mean the defaults.
type StoreOptions struct {
	Folds     Folds        // nil: every state is folded from the first record
	SaveEvery int          // records between two saved folds; 0: DefaultSaveEvery
	Logger    *slog.Logger // of what goes wrong with saved folds; nil: silent
	Metrics   *Metrics     // nil: nothing is measured
}

// Store folds sessions of a log.
type Store struct {
	log       eventlog.Log
	opts      StoreOptions
	timelines *shelf[keptTimeline]
}

// New returns a store on log.
func New(log eventlog.Log, o *StoreOptions) *Store {
	s := &Store{log: log, timelines: newShelf[keptTimeline](MaxTimelines, MaxTimelineBytes, TimelineIdle)}
	if o != nil {
		s.opts = *o
	}
	if s.opts.SaveEvery <= 0 {
		s.opts.SaveEvery = DefaultSaveEvery
	}
	if s.opts.Logger == nil {
		s.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

// Head returns the state at the session's head. Errors: as eventlog.Log.Read.
func (s *Store) Head(ctx context.Context, session string) (*projector.Tree, error) {
	return s.fold(ctx, session, 0)
}

// At returns the state after all records with sequence <= n. Errors: as
// eventlog.Log.Read; a *eventlog.CursorAheadError if n is beyond the head.
func (s *Store) At(ctx context.Context, session string, n uint64) (*projector.Tree, error) {
	if n == 0 {
		if _, err := s.log.Head(ctx, session); err != nil {
			return nil, err
		}
		return new(projector.Tree), nil
	}
	return s.fold(ctx, session, n)
}

// fold continues the nearest saved fold, or begins with the first record, up
// to the head if to is 0.
func (s *Store) fold(ctx context.Context, session string, to uint64) (*projector.Tree, error) {
	if s.opts.Folds != nil {
		t, err := s.continued(ctx, session, to, false)
		if t != nil || err != nil {
			return t, err
		}
	}
	t, err := s.run(ctx, session, new(projector.Tree), nil, to)
	if _, trimmed := errors.AsType[*eventlog.TrimmedError](err); trimmed && s.opts.Folds != nil {
		// What came before is gone: only a saved fold can tell, of whatever
		// version.
		if again, aerr := s.continued(ctx, session, to, true); again != nil && aerr == nil {
			return again, nil
		}
	}
	return t, err
}

// errStale tells that a saved fold is not of this log.
var errStale = errors.New("snapshot: saved fold is not of this log")

// continued returns nil, nil if there is no saved fold that can be used.
// Another version's is used only if that is allowed.
func (s *Store) continued(ctx context.Context, session string, to uint64, anyVersion bool) (*projector.Tree, error) {
	limit := to
	if limit == 0 {
		limit = ^uint64(0)
	}
	saved, err := s.opts.Folds.Nearest(ctx, session, limit)
	if err != nil {
		s.opts.Metrics.fail("read")
		s.opts.Logger.WarnContext(ctx, "saved fold not read", eventlog.LogSession, session, "error", err)
		return nil, nil
	}
	if saved == nil || saved.Version != projector.Version && !anyVersion {
		return nil, nil
	}
	t := new(projector.Tree)
	if err := json.Unmarshal(saved.State, t); err != nil || t.Head != saved.Sequence {
		s.opts.Metrics.fail("damaged")
		s.opts.Logger.WarnContext(ctx, "saved fold is damaged", eventlog.LogSession, session, "sequence", saved.Sequence)
		return nil, nil
	}
	t, err = s.run(ctx, session, t, saved, to)
	if errors.Is(err, errStale) {
		s.opts.Metrics.fail("stale")
		s.opts.Logger.WarnContext(ctx, "saved fold is stale", eventlog.LogSession, session, "sequence", saved.Sequence)
		return nil, nil
	}
	return t, err
}

// run applies what follows on t. With a saved fold it first looks at the
// record that the fold ends with.
func (s *Store) run(ctx context.Context, session string, t *projector.Tree, from *Saved, to uint64) (*projector.Tree, error) {
	began := time.Now()
	start, savedSize := uint64(0), 0
	if from != nil {
		start, savedSize = from.Sequence-1, len(from.State)
	}
	var last eventlog.Record
	records, size := 0, 0
	for r, err := range s.log.Read(ctx, session, start, to) {
		if _, ahead := errors.AsType[*eventlog.CursorAheadError](err); ahead && from != nil {
			return nil, s.aheadOrStale(ctx, session, to, err)
		}
		if err != nil {
			return nil, err
		}
		if from != nil && last.Sequence == 0 && (r.Sequence != from.Sequence || digest(r) != from.Digest) {
			return nil, errStale
		}
		projector.Apply(t, r)
		last = r
		records, size = records+1, size+len(r.Payload)
	}
	s.opts.Metrics.folded(began, records)
	if from != nil {
		s.opts.Metrics.load()
	}
	// A fold is worth its place when what it saves reading is larger.
	if s.opts.Folds != nil && records > s.opts.SaveEvery && size >= savedSize && s.log.Info().Refuses == "" {
		s.save(ctx, session, t, last)
	}
	return t, nil
}

// aheadOrStale tells a caller's cursor that is beyond the head from a saved
// fold that is.
func (s *Store) aheadOrStale(ctx context.Context, session string, to uint64, err error) error {
	head, herr := s.log.Head(ctx, session)
	if herr == nil && to > head {
		return err
	}
	return errStale
}

func (s *Store) save(ctx context.Context, session string, t *projector.Tree, last eventlog.Record) {
	state, err := json.Marshal(t)
	if err == nil {
		err = s.opts.Folds.Save(ctx, session, Saved{
			Sequence: last.Sequence, Version: projector.Version, Digest: digest(last), State: state,
		})
	}
	if err == nil {
		s.opts.Metrics.save()
	} else {
		s.opts.Metrics.fail("save")
		s.opts.Logger.WarnContext(ctx, "fold not saved", eventlog.LogSession, session, "error", err)
	}
	// Whoever asked may have left; what an erasure has missed goes all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
	defer cancel()
	if _, err := s.log.Head(ctx, session); errors.Is(err, eventlog.ErrSessionNotFound) {
		s.forget(ctx, session) // it was erased meanwhile
	}
}

// forgetTimeout bounds the erasure of a fold that was saved too late.
const forgetTimeout = 10 * time.Second

func (s *Store) forget(ctx context.Context, session string) {
	if err := s.opts.Folds.Erase(ctx, session); err != nil {
		s.opts.Logger.ErrorContext(ctx, "saved folds not erased", eventlog.LogSession, session, "error", err)
	}
}

// Erase removes every byte of a session from the log and from what was saved
// of it, for good. Errors: as eventlog.Log.Erase.
func (s *Store) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	defer s.timelines.drop(session)
	if s.opts.Folds == nil {
		return s.log.Erase(ctx, session)
	}
	if why := s.log.Info().RefusesErasure; why != "" {
		return eventlog.Erasure{}, fmt.Errorf("%w: %s", eventlog.ErrRefused, why)
	}
	// The folds first: if this breaks off, the session is still there to be
	// erased again.
	if err := s.opts.Folds.Erase(ctx, session); err != nil {
		return eventlog.Erasure{}, err
	}
	e, err := s.log.Erase(ctx, session)
	if err != nil && !errors.Is(err, eventlog.ErrSessionNotFound) {
		return e, err
	}
	// And what a reader saved meanwhile.
	if again := s.opts.Folds.Erase(ctx, session); again != nil {
		e.Pending = e.Pending || err == nil // the log's part is done
		return e, again
	}
	return e, err
}

// Saved yields the session's saved folds, by rising sequences. It yields none if
// the store's folds are no [Lister].
func (s *Store) Saved(ctx context.Context, session string) iter.Seq2[Saved, error] {
	return func(yield func(Saved, error) bool) {
		folds, ok := s.opts.Folds.(Lister)
		if !ok {
			return
		}
		all, err := folds.Sequences(ctx, session)
		if err != nil {
			yield(Saved{}, err)
			return
		}
		for _, n := range all {
			saved, err := folds.Nearest(ctx, session, n)
			if err == nil && (saved == nil || saved.Sequence != n) {
				continue // removed meanwhile
			}
			if err != nil {
				yield(Saved{}, err)
				return
			}
			if !yield(*saved, nil) {
				return
			}
		}
	}
}
