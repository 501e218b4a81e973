package maintenance

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/store"
	"github.com/helixd/helixd/eventlog/jetstream/internal/wire"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// FinishErasures implements [jetstream.Log.FinishErasures].
func (l *Maintenance) FinishErasures(ctx context.Context, lead bool) (n int, err error) {
	if ctx, err = l.Frees(ctx); err != nil {
		return 0, err
	}
	if l.Opts.Server != nil {
		if err := l.Opts.Server.Rescrub(ctx); err != nil {
			return 0, err
		}
		if err := l.ScrubBeside(ctx); err != nil {
			return 0, err
		}
	}
	return l.finishErasures(ctx, lead, time.Now())
}

// finishErasures is FinishErasures at a given time: first the erasures that are not done,
// then the marks of those that were done long ago.
func (l *Maintenance) finishErasures(ctx context.Context, lead bool, now time.Time) (n int, err error) {
	var failed []error
	if lead && l.leftDue(now) {
		failed = append(failed, l.markLeftBlobs(ctx, now))
	}
	for p := range l.Partitions() {
		marks, err := l.SubjectsOf(ctx, layout.SegmentStream(p), layout.ErasedSubjects+strconv.Itoa(p)+".*")
		if err != nil {
			return n, err
		}
		for _, session := range l.undone(ctx, p, l.done.others(p, marks), marks) {
			began := time.Now()
			ended, err := l.finishErasure(ctx, session, lead)
			if err != nil {
				failed = append(failed, fmt.Errorf("session %q: %w", session, err))
			}
			if ctx.Err() != nil {
				return n, context.Cause(ctx)
			}
			if ended {
				n++
			}
			l.Yield(ctx, began)
		}
	}
	if lead {
		failed = append(failed, l.forgetDue(ctx, now), l.DropStrays(ctx, now, l.Wipe))
	}
	return n, errors.Join(failed...)
}

// FindErasures implements [jetstream.Log.FindErasures].
func (l *Maintenance) FindErasures(ctx context.Context) error {
	ctx, err := l.Frees(ctx)
	if err != nil {
		return err
	}
	for session, err := range l.Sessions(ctx) {
		if err != nil {
			return err
		}
		began := time.Now()
		if _, err := l.findErasure(ctx, session); err != nil {
			return fmt.Errorf("session %q: %w", session, err)
		}
		l.Yield(ctx, began)
	}
	return nil
}

// findErasure marks a session that has a tombstone.
func (l *Maintenance) findErasure(ctx context.Context, session string) (e *store.Erasing, err error) {
	tombstone, err := l.TombstoneOf(ctx, session)
	if err == nil {
		e, err = l.beginAt(ctx, session, tombstone)
	}
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil, nil
	}
	return e, err
}

// finishErasure continues a session's erasure, and reports whether it has ended. It
// erases only what the mark refers to: the session may have been created again.
func (l *Maintenance) finishErasure(ctx context.Context, session string, lead bool) (ended bool, err error) {
	e, err := l.ErasingOf(ctx, session)
	if err != nil || e.At == 0 {
		return false, err
	}
	if e.Done {
		if lead { // the mark may have earlier messages, if the node died that ended the erasure
			err = l.TidyMark(ctx, session, e)
		}
		return false, err
	}
	if e.Head > 0 && lead {
		if e, err = l.finishWanted(ctx, session, e); err != nil || e == nil {
			return false, err
		}
	}
	if !e.Removed {
		if !lead || e.Head > 0 {
			return false, nil
		}
		_, err := l.RemoveAll(ctx, session, e)
		if errors.Is(err, eventlog.ErrSessionNotFound) { // another node has ended it
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	left, err := l.OverwriteAll(ctx, session, e)
	if err != nil || !lead {
		return false, err
	}
	if left.Some() && !l.NeverKnows() {
		return false, nil
	}
	return l.EndErasing(ctx, session, e, left.Some())
}

// finishWanted appends the tombstone that a mark asks for, unless the present session of the id
// is another one.
func (l *Maintenance) finishWanted(ctx context.Context, session string, e *store.Erasing) (*store.Erasing, error) {
	if marked, err := l.findErasure(ctx, session); marked != nil || err != nil {
		return marked, err
	}
	same, err := l.Lives(ctx, session, e.Head)
	if errors.Is(err, wire.ErrDamaged) {
		return l.eraseDamaged(ctx, session, e)
	}
	if err == nil && !same {
		same, err = l.wantLeft(ctx, session, e)
	}
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, l.dropWanted(ctx, session, e)
	}
	tombstone, err := l.tombstone(ctx, session)
	if err != nil {
		return nil, err
	}
	return l.beginAt(ctx, session, tombstone)
}

// wantLeft reports whether the present session is the wanted one with its end cut off by
// a power loss: all of it is before the wanted head. It marks the present head.
func (l *Maintenance) wantLeft(ctx context.Context, session string, e *store.Erasing) (bool, error) {
	left, err := l.leftOf(ctx, session, e.Head)
	if err != nil || left == 0 {
		return false, err
	}
	_, err = l.Change(ctx, session, func(now *store.Erasing) bool {
		same := now.Head == e.Head
		if same {
			now.Head = left
		}
		return same
	})
	return err == nil, err
}

// eraseDamaged marks all of a wanted session that has only segments, the last of which
// can't be unpacked. It needs no tombstone: while that segment exists, no append to the id
// succeeds. Errors: ErrDamaged otherwise; the session stays wanted.
func (l *Maintenance) eraseDamaged(ctx context.Context, session string, e *store.Erasing) (*store.Erasing, error) {
	p := l.PartitionOf(session)
	switch n, err := l.Count(ctx, layout.LogStream(p), layout.LogSubject(session, p)); {
	case err != nil:
		return nil, err
	case n > 0:
		return nil, fmt.Errorf("%w: the session that is to be erased can't be read", wire.ErrDamaged)
	}
	m, err := l.LastReadable(ctx, layout.SegmentStream(p), layout.SegmentSubject(session, p))
	if errors.Is(err, link.ErrNoMessage) { // another node has removed it
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := wire.Unpack(m.Data); err == nil || m.Sequence > e.At { // a segment stored after the mark may be of a later session
		return nil, fmt.Errorf("%w: segments of the session that is to be erased can't be read", wire.ErrDamaged)
	}
	parts, err := l.PartsOf(ctx, session, e.Head)
	if err != nil {
		return nil, err
	}
	return l.Change(ctx, session, func(now *store.Erasing) bool {
		if now.Head != e.Head {
			return false
		}
		now.Head, now.Tombstone, now.Parts, now.Removed = 0, 0, store.Join(now.Parts, parts), false
		now.NextRound()
		return true
	})
}

// dropWanted withdraws the mark of a session that does not exist. Errors: ErrDamaged if
// the server can't read whether it does.
func (l *Maintenance) dropWanted(ctx context.Context, session string, e *store.Erasing) error {
	if _, err := l.leftOf(ctx, session, e.Head); err != nil {
		return err
	}
	if e.Tombstone == 0 && len(e.Parts) == 0 {
		return l.ForgetErasing(ctx, session, e)
	}
	_, err := l.Change(ctx, session, func(now *store.Erasing) bool { // the mark of an earlier erasure
		same := now.Head == e.Head
		if same {
			now.Head = 0
		}
		if same && len(now.Parts) == 0 { // that erasure was done
			now.Removed, now.Done, now.Told = true, true, true
		}
		return same
	})
	return err
}

// beginAt marks that the session has a tombstone. Errors: ErrSessionNotFound if it has none, or
// no longer.
func (l *Maintenance) beginAt(ctx context.Context, session string, tombstone uint64) (*store.Erasing, error) {
	stream, subject, err := l.Place(session)
	if err != nil {
		return nil, err
	}
	l.sealerOf(session).forget(session)
	// Later messages are of a session that was created again, if another node has
	// finished the same erasure.
	parts, err := l.PartsOf(ctx, session, tombstone)
	if err != nil {
		return nil, err
	}
	again, err := l.LastMessage(ctx, stream, subject)
	if errors.Is(err, link.ErrNoMessage) || err == nil && again.Sequence != tombstone {
		return nil, eventlog.ErrSessionNotFound
	}
	if err != nil {
		return nil, err
	}
	return l.Begin(ctx, session, tombstone, parts)
}

// eraseTo erases a session that has a tombstone.
func (l *Maintenance) eraseTo(ctx context.Context, session string, tombstone uint64) (done eventlog.Erasure, err error) {
	done.Pending = true // the tombstone is durable
	e, err := l.beginAt(ctx, session, tombstone)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return l.erased(ctx, session)
	}
	if err != nil {
		return done, err
	}
	if !e.Removed {
		done.Records, err = l.RemoveAll(ctx, session, e)
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return l.erased(ctx, session)
		}
		if err != nil {
			return done, err
		}
	}
	left, err := l.OverwriteAll(ctx, session, e)
	if err != nil {
		return done, err
	}
	left.Tell(&done)
	if !left.Some() {
		_, err = l.EndErasing(ctx, session, e, true)
		done.Pending = err != nil
	} else if l.NeverKnows() {
		_, err = l.EndErasing(ctx, session, e, true)
	}
	return done, err
}

// erased reports whether bytes of a session that is not found may be left.
func (l *Maintenance) erased(ctx context.Context, session string) (eventlog.Erasure, error) {
	e, err := l.ErasingOf(ctx, session)
	if err != nil {
		return eventlog.Erasure{}, err
	}
	if e.At == 0 || e.Done && e.Told {
		return eventlog.Erasure{}, eventlog.ErrSessionNotFound
	}
	if e.Done {
		_, err = l.EndErasing(ctx, session, e, true)
		return eventlog.Erasure{}, err
	}
	if e.Head > 0 && len(e.Parts) == 0 {
		switch there, err := l.cameSince(ctx, session, e.Head); {
		case err != nil:
			return eventlog.Erasure{}, err
		case there:
			return l.Erase(ctx, session)
		}
		return eventlog.Erasure{}, errors.Join(eventlog.ErrSessionNotFound, l.dropWanted(ctx, session, e))
	}
	done := eventlog.Erasure{Pending: true}
	if !e.Removed {
		if done.Records, err = l.RemoveAll(ctx, session, e); err != nil {
			return done, err
		}
	}
	left, err := l.OverwriteAll(ctx, session, e)
	if left.Tell(&done); err != nil || left.Some() {
		return done, err
	}
	_, err = l.EndErasing(ctx, session, e, true)
	done.Pending = err != nil
	return done, err
}

// cameSince reports whether a session that was not found exists after all, or has a tombstone:
// its first record was late, and another node has marked it since, for an erasure that
// must not lose its mark.
func (l *Maintenance) cameSince(ctx context.Context, session string, head uint64) (bool, error) {
	if there, err := l.Lives(ctx, session, head); err != nil || there {
		return there, err
	}
	_, err := l.TombstoneOf(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return false, nil
	}
	return err == nil, err
}
