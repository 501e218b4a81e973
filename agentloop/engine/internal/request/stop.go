package request

import (
	"context"
	"slices"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Stop asks for the session's run to stop, or for that of sub-agents that have outlived
// its turn. It returns when the request is durable. If only is not empty, a session whose
// current run is another one, has ended or waits is left as it is.
func (c *Core) Stop(ctx context.Context, session, only string, kind fact.StopKind, reason string) error {
	reason = shorten.Text(reason, agentloop.MaxErrorText)
	var waits, over bool
	// A tree that runs is on the list already, and must be stopped without it.
	idle := func(t *projector.Tree) bool { return t.Turn == nil || !t.Running() }
	t, ticket, err := c.AppendWork(ctx, session, "", idle, func(t *projector.Tree) ([]record.Draft, error) {
		waits, over = false, false // an earlier proposal may have conflicted
		switch {
		case t == nil:
			return nil, eventlog.ErrSessionNotFound
		case only != "" && (t.Turn == nil || t.Turn.RunID != only || !t.Running()):
			over = true
			return nil, nil
		case t.Turn == nil:
			return c.stopOutliving(t, kind, reason), nil
		case kind == fact.StopInterrupt && t.Status != projector.SessionActive,
			t.Turn.Stop != nil && (t.Turn.Stop.Kind == kind && !t.Turn.Stop.Heard || t.Turn.Stop.Kind == fact.StopAbort):
			return nil, nil
		}
		waits = !t.Running()
		run := t.Turn.RunID
		return []record.Draft{{Run: run, Fact: &fact.InterruptRequested{
			RunID: run, Kind: kind, Reason: reason, Base: c.Clock.FactBase(session),
		}}}, nil
	})
	switch {
	case err != nil:
		return err
	case over:
		return nil
	case t.Turn == nil:
		if c.ChildWaits(t) {
			return c.DispatchAsked(ctx, t, ticket)
		}
	case t.Turn.Stop == nil:
	case waits || !c.Node.DrivenElsewhere(ctx, t):
		err := c.DispatchAsked(ctx, t, ticket)
		if err == nil {
			return nil
		}
		if now, herr := c.States.Head(ctx, session); herr == nil && Stopped(now) {
			return nil // this node drove it, and has already stopped it
		}
		return err
	default: // another node has it, if that lives
		c.takeOverUnlessHeard(session, kind)
	}
	return nil
}

// stopOutliving asks the sub-agents to stop that have outlived their parent's
// turn. Those that are interrupted continue with its next one.
func (c *Core) stopOutliving(t *projector.Tree, kind fact.StopKind, reason string) []record.Draft {
	var facts []record.Draft
	for _, child := range t.ChildrenOf(t.SessionID) {
		if child.Turn == nil || child.Turn.Stop != nil && child.Turn.Stop.Kind == kind ||
			kind == fact.StopInterrupt && child.Status != projector.SessionActive {
			continue
		}
		run := child.Turn.RunID
		facts = append(facts, record.Draft{Agent: child.SessionID, Run: run, Fact: &fact.InterruptRequested{
			RunID: run, Kind: kind, Reason: reason, ByParent: true, Base: c.Clock.FactBase(child.SessionID),
		}})
	}
	return facts
}

// ChildWaits reports whether there is something to do for a sub-agent though
// the root's turn is finished.
func (c *Core) ChildWaits(t *projector.Tree) bool {
	if t.CurrentRun() == nil {
		return false
	}
	d := decide.Decider{Agents: c.Agents.Defs(), Busy: func(string) bool { return false }}
	return len(d.Decide(t)) > 0
}

// stopGrace is how long another node has to learn of a stop before this one
// takes the run over.
const stopGrace = time.Second

// takeOverUnlessHeard drives the session if no other node acknowledges the stop. To
// take a run over cuts its tools off, which an interrupt must not do while who
// drives it lives.
func (c *Core) takeOverUnlessHeard(session string, kind fact.StopKind) {
	c.Node.Begin(func() {
		ctx, cancel := context.WithTimeout(c.Node.Ctx, stopGrace)
		defer cancel()
		_, err := c.Await(ctx, session, func(t *projector.Tree) bool {
			heard := kind == fact.StopInterrupt && t.Turn != nil && t.Turn.Stop != nil && t.Turn.Stop.Heard
			return heard || Stopped(t)
		})
		if err != nil && c.Node.Ctx.Err() == nil {
			c.Node.Take(session, kind == fact.StopAbort)
		}
	})
}

// AwaitStop waits until all requests to stop are fulfilled in the session's tree.
func (c *Core) AwaitStop(ctx context.Context, session string) error {
	_, err := c.Await(ctx, session, Stopped)
	return err
}

// Stopped reports whether all requests to stop are fulfilled in a tree.
func Stopped(t *projector.Tree) bool { return !slices.ContainsFunc(t.Sessions(), stopWanted) }

// stopWanted reports whether a wish to stop has not been met. A further run
// voids it.
func stopWanted(s *projector.Session) bool {
	if s.Turn == nil || s.Turn.Stop == nil {
		return false
	}
	return s.Turn.Stop.Kind == fact.StopAbort || s.Status == projector.SessionActive
}
