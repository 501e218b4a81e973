package snapshot

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/timeline"
)

// Bounds of the timelines that a store keeps in order to continue them on the next
// request. The one that was last requested is kept whatever its size.
const (
	maxTimelines = 64
	// timelineIdle is how long a timeline is kept without a request for it.
	timelineIdle = 5 * time.Minute
)

// keptTimeline is a timeline that can be folded further.
type keptTimeline struct {
	*timeline.Timeline
	digest string // of the record at its head
	layer  layer
}

// Timeline returns the session's timeline at its head: the parts that are new or have
// changed after from; 0: all of it. If retention has removed records, it begins with the
// remaining ones. Errors: as eventlog.Log.Read; a *eventlog.CursorAheadError if from is
// beyond the head.
func (s *Store) Timeline(ctx context.Context, session string, from uint64) (timeline.View, error) {
	v, _, err := s.TimelineUpTo(ctx, session, from, math.MaxInt)
	return v, err
}

// TimelineUpTo is Timeline if that has at most so many spans, marks and lanes. It returns how many
// they are; if they are more, it copies none of them, and the View is empty.
func (s *Store) TimelineUpTo(ctx context.Context, session string, from uint64, most int) (v timeline.View, n int, err error) {
	err = s.timelines.Use(ctx, session, func(k *keptTimeline) (int, error) {
		if err := s.foldOn(ctx, session, k); err != nil {
			if k.Timeline == nil {
				return 0, err
			}
			return k.Size(), err
		}
		if head := k.Head(); from > head {
			return k.Size(), &eventlog.CursorAheadError{Cursor: from, Head: head}
		}
		if n = k.CountSince(from); n <= most {
			v = k.Since(from)
		}
		return k.Size(), nil
	})
	return v, n, err
}

// foldOn continues a kept timeline up to the session's head. If the timeline is not of
// this log, because the session was erased or the log has lost its end, it is folded
// again.
func (s *Store) foldOn(ctx context.Context, session string, k *keptTimeline) error {
	if k.Timeline != nil {
		err := s.foldBehind(ctx, session, k, k.Head()-1)
		_, ahead := errors.AsType[*eventlog.CursorAheadError](err)
		_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
		switch {
		case ahead, trimmed, errors.Is(err, errStale):
		case errors.Is(err, eventlog.ErrSessionNotFound):
			*k = keptTimeline{}
			return err
		default:
			return err
		}
	}
	*k = keptTimeline{Timeline: timeline.New()}
	err := s.foldBehind(ctx, session, k, 0)
	if trimmed, ok := errors.AsType[*eventlog.TrimmedError](err); ok {
		*k = keptTimeline{}
		state, serr := s.oldest(ctx, session, trimmed.Floor)
		if serr != nil || state == nil {
			return cmp.Or(serr, err)
		}
		k.Timeline = timeline.From(state)
		err = s.foldBehind(ctx, session, k, state.Head)
		if err == nil && k.digest == "" { // there is nothing after it
			return nil
		}
	}
	if k.digest == "" { // no record was read
		*k = keptTimeline{}
	}
	return err
}

// oldest returns the first state at or after a floor that can be computed, or nil.
func (s *Store) oldest(ctx context.Context, session string, floor uint64) (*projector.Tree, error) {
	if s.opts.Folds == nil {
		return nil, nil
	}
	all, err := s.opts.Folds.Sequences(ctx, session, packed, JSON)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n >= floor {
			return s.At(ctx, session, n)
		}
	}
	return nil, nil
}

// foldBehind applies the records after from. If the timeline has been folded before, it
// first checks that the log still has the last record.
func (s *Store) foldBehind(ctx context.Context, session string, k *keptTimeline, from uint64) error {
	began, erasures := time.Now(), s.erasures.Load()
	var last eventlog.Record
	records := 0
	if k.layer.lineage == nil {
		k.layer.lineage = new(lineage)
	}
	defer func() {
		if last.Sequence > 0 {
			k.digest = digest(last)
		}
		s.opts.Metrics.folded(began, records)
		if len(k.layer.added) > 0 {
			s.keep(ctx, session, erasures, k.layer.added, unsaved{seq: k.Head()}, nil)
			k.layer.added, k.layer.own = nil, 0
		}
	}()
	known := k.digest == ""
	for r, err := range s.log.Read(ctx, session, from, 0) {
		switch {
		case err != nil:
			return err
		case !known:
			if known = true; r.Sequence != k.Head() || digest(r) != k.digest {
				return errStale
			}
		default:
			k.Apply(r)
			k.layer.see(r, k.State)
			last = r
			records++
		}
	}
	return nil
}
