package engine

import (
	"context"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Interrupt asks the session's run to stop for now: it can be resumed. The request is a record: the node that drives the run
// fulfils it, at once during a model call, otherwise at the step's end. A session that
// does not run is left as it is, but for its sub-agents that have outlived its
// turn. It returns when the wish is durable; see AwaitStop.
//
// A run whose process has died is taken over to be stopped: a node that drives a
// run which can't stop at once acknowledges the request within a second.
//
// Errors: eventlog.ErrSessionNotFound and what the log returns.
func (l *Loop) Interrupt(ctx context.Context, session, reason string) error {
	return l.requestStop(ctx, session, eventlog.StopInterrupt, reason)
}

// Abort ends the session's run for good, also one that waits: it has failed. A
// node that does not meet that within a second loses the run. Other terms as
// Interrupt. Remote agents get the request, too, also those of a process that has
// died, as far as they can be reached. An agent of the session's type need not
// be here.
func (l *Loop) Abort(ctx context.Context, session, reason string) error {
	return l.requestStop(ctx, session, eventlog.StopAbort, reason)
}

func (l *Loop) requestStop(ctx context.Context, session string, kind eventlog.StopKind, reason string) error {
	reason = shorten.Text(reason, agentloop.MaxErrorText)
	var waits bool
	// A tree that runs is on the list already, and must be stopped without it.
	rests := func(t *projector.Tree) bool { return t.Turn == nil || !t.Running() }
	t, ticket, err := l.requests.AppendWork(ctx, session, "", rests, func(t *projector.Tree) ([]record.Draft, error) {
		switch {
		case t == nil:
			return nil, eventlog.ErrSessionNotFound
		case t.Turn == nil:
			return l.stopOutliving(t, kind, reason), nil
		case kind == eventlog.StopInterrupt && t.Status != projector.SessionActive,
			t.Turn.Stop != nil && (t.Turn.Stop.Kind == kind && !t.Turn.Stop.Heard || t.Turn.Stop.Kind == eventlog.StopAbort):
			return nil, nil
		}
		waits = !t.Running()
		run := t.Turn.RunID
		return []record.Draft{{Run: run, Fact: &eventlog.InterruptRequested{
			RunID: run, Kind: kind, Reason: reason, FactBase: l.clock.FactBase(session),
		}}}, nil
	})
	switch {
	case err != nil:
		return err
	case t.Turn == nil:
		if l.childWaits(t) {
			return l.requests.DispatchAsked(ctx, t, ticket)
		}
	case t.Turn.Stop == nil:
	case waits || !l.node.DrivenElsewhere(ctx, t):
		return l.requests.DispatchAsked(ctx, t, ticket)
	default: // another node has it, if that lives
		l.takeOverUnlessHeard(session, kind)
	}
	return nil
}

// stopOutliving asks the sub-agents to stop that have outlived their parent's
// turn. Those that are interrupted continue with its next one.
func (l *Loop) stopOutliving(t *projector.Tree, kind eventlog.StopKind, reason string) []record.Draft {
	var facts []record.Draft
	for _, child := range t.ChildrenOf(t.SessionID) {
		if child.Turn == nil || child.Turn.Stop != nil && child.Turn.Stop.Kind == kind ||
			kind == eventlog.StopInterrupt && child.Status != projector.SessionActive {
			continue
		}
		run := child.Turn.RunID
		facts = append(facts, record.About(child.SessionID, []record.Draft{{Run: run, Fact: &eventlog.InterruptRequested{
			RunID: run, Kind: kind, Reason: reason, ByParent: true, FactBase: l.clock.FactBase(child.SessionID),
		}}})...)
	}
	return facts
}

// stopGrace is how long another node has to learn of a stop before this one
// takes the run over.
const stopGrace = time.Second

// takeOverUnlessHeard drives the session if no other node acknowledges the stop. To
// take a run over cuts its tools off, which an interrupt must not do while who
// drives it lives.
func (l *Loop) takeOverUnlessHeard(session string, kind eventlog.StopKind) {
	l.node.Begin(func() {
		ctx, cancel := context.WithTimeout(l.ctx, stopGrace)
		defer cancel()
		_, err := l.requests.Await(ctx, session, func(t *projector.Tree) bool {
			heard := kind == eventlog.StopInterrupt && t.Turn != nil && t.Turn.Stop != nil && t.Turn.Stop.Heard
			return heard || request.Stopped(t)
		})
		if err != nil && l.ctx.Err() == nil {
			l.node.Take(session, 0, kind == eventlog.StopAbort)
		}
	})
}

// AwaitStop waits until all requests to stop in the log are fulfilled, in
// the whole tree: a run that was suspended has ended before its session has
// stopped, and a sub-agent may have outlived its parent's turn.
func (l *Loop) AwaitStop(ctx context.Context, session string) error {
	return l.requests.AwaitStop(ctx, session)
}

// awaitRun returns the state in which a run is finished or waits, or is not the
// last one any more.
func (l *Loop) awaitRun(ctx context.Context, session, run string) (*projector.Tree, error) {
	return l.requests.Await(ctx, session, func(t *projector.Tree) bool {
		last := t.CurrentRun()
		return last == nil || !t.Running() || last.RunID != run
	})
}
