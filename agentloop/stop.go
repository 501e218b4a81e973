package agentloop

import (
	"context"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Interrupt asks the session's run to stop for now: it can be resumed
// (document 004). The wish is a record: whichever node drives the run meets
// it, at once while a model speaks, else at the step's end. A session that
// does not run is left as it is. It returns when the wish is durable; see
// AwaitStop.
//
// Errors: eventlog.ErrSessionNotFound and what the log returns.
func (l *Loop) Interrupt(ctx context.Context, session, reason string) error {
	return l.requestStop(ctx, session, eventlog.StopInterrupt, reason)
}

// Abort ends the session's run for good, also one that waits: it has failed.
// Terms as Interrupt.
func (l *Loop) Abort(ctx context.Context, session, reason string) error {
	return l.requestStop(ctx, session, eventlog.StopAbort, reason)
}

func (l *Loop) requestStop(ctx context.Context, session string, kind eventlog.StopKind, reason string) error {
	reason = cutTo(reason, MaxErrorText)
	var waits bool
	t, err := l.appendPlan(ctx, session, func(t *projector.Tree) ([]fact, error) {
		switch {
		case t == nil:
			return nil, eventlog.ErrSessionNotFound
		case t.Turn == nil,
			kind == eventlog.StopInterrupt && t.Status != projector.SessionActive,
			t.Turn.Stop != nil && (t.Turn.Stop.Kind == kind || t.Turn.Stop.Kind == eventlog.StopAbort):
			return nil, nil
		}
		waits = !t.Running()
		run := t.Turn.RunID
		return []fact{{run: run, f: &eventlog.InterruptRequested{
			RunID: run, Kind: kind, Reason: reason, FactBase: l.factBase(session),
		}}}, nil
	})
	switch {
	case err != nil:
		return err
	case t.Turn == nil || t.Turn.Stop == nil:
	case waits || l.Live(session):
		l.drive(session)
	default: // another node has it, if that lives
		l.takeOverUnlessStopped(session, t.Turn.RunID)
	}
	return nil
}

// stopGrace is how long another node has to meet a stop before this one takes
// the run over.
const stopGrace = time.Second

// takeOverUnlessStopped drives the session if nobody else meets the stop of
// its run.
func (l *Loop) takeOverUnlessStopped(session, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return
	}
	l.wg.Go(func() {
		ctx, cancel := context.WithTimeout(l.ctx, stopGrace)
		defer cancel()
		if l.AwaitStop(ctx, session, run) != nil && l.ctx.Err() == nil {
			l.drive(session)
		}
	})
}

// AwaitStop waits until the session's run with the given id, empty for the
// last one, is over or waits.
func (l *Loop) AwaitStop(ctx context.Context, session, run string) error {
	_, err := l.awaitRun(ctx, session, run)
	return err
}

// awaitRun returns the state in which a run is over or waits, or is not the
// last one any more.
func (l *Loop) awaitRun(ctx context.Context, session, run string) (*projector.Tree, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	stopped := func() bool {
		last := t.CurrentRun()
		return last == nil || !t.Running() || run != "" && last.RunID != run
	}
	if stopped() {
		return t, nil
	}
	for r, err := range l.log.Follow(ctx, session, t.Head) {
		if err != nil {
			return nil, err
		}
		if projector.Apply(t, r); stopped() {
			return t, nil
		}
	}
	return nil, context.Cause(ctx)
}
