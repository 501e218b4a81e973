package logtest

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/helixd/helixd/eventlog"
)

// LifecycleRestored is an empty store to which copies are restored.
type LifecycleRestored struct {
	// Lifecycle is what can happen there. A node that is not open is nil. Stored also
	// returns the restored records; one at the floor represents those before it.
	*Lifecycle
	// Write writes the copies, and Finish opens the store to all. Errors: ErrNotEmpty.
	Write, Finish func(ctx context.Context) error
	// Enter opens one of the nodes. Errors: ErrRestoring.
	Enter func(ctx context.Context, node int) error
}

// Errors of LifecycleRestored.
var (
	ErrNotEmpty  = errors.New("logtest: the store is not empty")
	ErrRestoring = errors.New("logtest: a restore into the store has not ended")
)

// RestorePoint is the prefix of those points of a restore that faults apply to.
const RestorePoint = "restore "

// lifeEnters is how often a node tries to open a store that is being restored, at most.
const lifeEnters = 60

// lifeRestored is a restore, and the simulation of the restored store.
type lifeRestored struct {
	life
	to        *LifecycleRestored
	finishing bool
	finished  bool
	notEmpty  bool // a node was there before
	occupied  bool // and has opened it
}

// restore restores the copies to another store while a node tries to open that store.
// Then nodes of both stores continue.
func (a *liver) restore(ctx context.Context) {
	r := &lifeRestored{}
	a.restored = r
	for _, session := range a.sessions {
		a.copy(ctx, session)
	}
	maps.DeleteFunc(a.copies, func(_ string, c LifecycleCopy) bool { return len(c.Records) == 0 })
	if len(a.copies) == 0 {
		a.restored = nil
		return
	}
	r.origin = maps.Clone(a.copies)
	r.sessions = slices.Sorted(maps.Keys(r.origin))
	var copies []LifecycleCopy
	for _, session := range r.sessions {
		copies = append(copies, r.origin[session])
	}
	r.to = a.Restore(a.copied, copies)
	r.Lifecycle, r.ctx, r.seed, r.name, r.running = r.to.Lifecycle, a.ctx, a.seed, "r", a.running
	r.heads, r.copies, r.retains = map[string][]uint64{}, map[string]LifecycleCopy{}, a.retains
	r.large, r.texts = a.large, a.texts
	known := map[string]uint64{}
	for session, c := range r.origin {
		if c.Floor > 0 {
			r.trims = append(r.trims, lifeTrim{session, c.Floor, c.Floor})
		}
		for _, rec := range c.Records {
			r.heads[session] = append(r.heads[session], rec.Sequence)
			known[session] = rec.Sequence
			if r.Secrets != nil {
				r.Secrets(secretOf(rec.Payload))
			}
		}
	}
	for node := range r.Nodes {
		there := r.actor(a.steps, node, lifeThere+uint64(node), maps.Clone(known))
		if node == 0 { // one that waits for the restore
			a.steps.Go(ctx, func(ctx context.Context) { there.afterwards(ctx, r) })
		} else {
			a.steps.Go(ctx, func(ctx context.Context) { there.enter(ctx, r) })
		}
	}
	err := r.to.Write(ctx)
	a.tell("write", "copies", err)
	if err == nil {
		r.finishing = true
		err = r.to.Finish(ctx)
		a.tell("finish", "copies", err)
		r.finished = err == nil
	}
	switch {
	case err == nil && r.occupied:
		a.failf("restore: it succeeds in a store that a node opened before")
	case err == nil, errors.Is(err, errDied), errors.Is(err, eventlog.ErrOutcomeUnknown):
	case errors.Is(err, ErrNotEmpty):
		r.notEmpty = true
	default:
		a.failf("restore: %w", err)
	}
}

// afterwards opens a node of a restored store and runs it.
func (a *liver) afterwards(ctx context.Context, r *lifeRestored) {
	for range lifeEnters {
		if a.steps.Yield(ctx); r.finished {
			a.enter(ctx, r)
			return
		}
	}
}

// enter opens a node of a store that is being restored, as soon as that is possible, and
// runs it.
func (a *liver) enter(ctx context.Context, r *lifeRestored) {
	for range lifeEnters {
		a.steps.Yield(ctx)
		finished := r.finished
		err := r.to.Enter(ctx, a.node)
		a.tell("enter", "", err)
		a.steps.Restart(ctx)
		switch {
		case err == nil && !r.finishing:
			r.occupied = true
			return
		case err == nil:
			a.run(ctx)
			return
		case finished && !errors.Is(err, errDied) && !errors.Is(err, eventlog.ErrOutcomeUnknown):
			a.failf("a node does not open a store that was restored: %w", err)
			return
		}
	}
}

func (a *liver) copy(ctx context.Context, session string) {
	c, ok := a.log().(eventlog.Copier)
	if !ok {
		return
	}
	ends, err := c.Ends(ctx)
	if err != nil {
		a.failf("ends: %w", err)
		return
	}
	var all []eventlog.Copied
	r := a.begin("copy", session, 0)
	r.upTo = ends[c.PartitionOf(session)]
	floor, records, err := c.Copy(ctx, session, r.upTo)
	if err != nil {
		r.err = err
	} else {
		r.from = floor
		for c, err := range records {
			if r.err = err; err != nil {
				break
			}
			r.got = append(r.got, c.Record)
			all = append(all, c)
			a.checkOrigin(session, c)
		}
	}
	if r.err == nil {
		a.copies[session], a.copied = LifecycleCopy{session, r.from, all}, max(a.copied, r.upTo)
	}
	a.expect("copy", session, r.err, eventlog.ErrSessionNotFound, eventlog.ErrIncomplete)
}

// checkOrigin compares what a store has with what it was restored from.
func (a *liver) checkOrigin(session string, got eventlog.Copied) {
	for _, want := range a.origin[session].Records {
		if want.Sequence == got.Sequence && !reflect.DeepEqual(want, got) {
			a.failf("%s: record %d was restored as %+v, and is %+v", session, want.Sequence, want, got)
		}
	}
}

// checkRestored: a restored store has what was copied and what was stored there since, and
// no node opens one whose restore did not finish.
func (s *life) checkRestored() {
	r := s.restored
	if r == nil || r.Lifecycle == nil {
		return
	}
	for node := range r.Nodes {
		if r.Nodes[node] != nil {
			continue
		}
		err := r.to.Enter(s.ctx, node)
		switch {
		case r.finished && err != nil:
			s.failf("a node does not open a store that was restored: %w", err)
			return
		case err == nil && !r.finishing && !r.notEmpty:
			s.failf("a node opens a store whose restore did not finish")
		}
	}
	if r.finished {
		r.past = s.appends
		r.check()
	}
	s.errs = append(s.errs, r.errs...)
	for _, line := range r.trace {
		s.trace = append(s.trace, "restored: "+line)
	}
}
