// Package request appends what a request asks for, and has the session's tree driven.
package request

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/admission"
	"github.com/helixd/helixd/agentloop/engine/internal/node"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// Core is what all requests of a node use. Worklist and Quota may be nil.
type Core struct {
	Log      eventlog.Log
	States   *snapshot.Store
	Agents   *node.Agents
	Node     *node.Node
	Clock    record.Clock
	Worklist agentloop.Worklist
	Quota    *quota.Quota
	Logger   *slog.Logger
}

// Started names the run that a request began or found.
type Started struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	RunID     string `json:"runId"`
}

// Begun names a run.
func Begun(session, run string) Started {
	return Started{SessionID: session, StreamID: session, RunID: run}
}

// Hosted returns an UnknownAgentError if no node runs the agent.
func (c *Core) Hosted(ctx context.Context, agentType string) error {
	_, err := c.InitialState(ctx, agentType)
	return err
}

// InitialState returns the initial state of an agent that some node hosts, or
// an UnknownAgentError.
func (c *Core) InitialState(ctx context.Context, agentType string) (state json.RawMessage, err error) {
	if def := c.Agents.Defs()[agentType]; def != nil {
		return def.InitialState, nil
	}
	hosted := false
	if c.Worklist != nil && agentType != "" {
		if state, hosted, err = c.Worklist.Agent(ctx, agentType); err != nil {
			return nil, err
		}
	}
	if !hosted {
		return nil, &agentloop.UnknownAgentError{AgentType: agentType, Known: slices.Sorted(maps.Keys(c.Agents.Defs()))}
	}
	return state, nil
}

// DispatchAsked is Dispatch for a tree that is on the work list, if there is one, only if it
// has a ticket: without one it is put there.
func (c *Core) DispatchAsked(ctx context.Context, t *projector.Tree, ticket uint64) error {
	if ticket == 0 && c.Worklist != nil && !c.Node.IsDriven(ctx, t) {
		var err error
		var done func()
		if ticket, done, err = c.Node.Announce(ctx, t.AgentType, t.SessionID); err != nil {
			return err
		}
		defer done()
	}
	c.Dispatch(t, ticket)
	return nil
}

// Dispatch has a tree driven to which something was appended: by the node that
// holds it, by this one, or by another one if its agent is not here.
func (c *Core) Dispatch(t *projector.Tree, ticket uint64) {
	elsewhere := c.Node.HandsOver(t.AgentType) || c.Agents.Defs()[t.AgentType] == nil && !decide.Aborting(&t.Session)
	if elsewhere && c.Worklist != nil && !c.Node.Live(t.SessionID) {
		c.Node.ForgetRequests(t)
		if claim := t.Claim; claim == nil || !c.Worklist.Holds(c.Node.Ctx, claim.Node, t.SessionID, ticket) {
			c.Worklist.Wake("", t.AgentType, t.SessionID)
		}
		return
	}
	c.Node.TakeUp(t, ticket)
}

// Propose returns what to append to a session in state t (nil: there is none),
// and which run the answer names. It is called again if another writer was first.
type Propose func(t *projector.Tree) (facts []record.Draft, run string, err error)

// NewRun drafts a run for a request from outside, which may have a place in a
// trace, with what the request asks of this run alone.
func (c *Core) NewRun(ctx context.Context, session string, mode fact.RunMode, messages []agentloop.Input, o fact.RunOptions) []record.Draft {
	facts := c.Clock.NewRun(session, mode, messages)
	run := facts[len(facts)-1].Fact.(*fact.RunRequested)
	run.TraceParent, run.RunOptions = tracing.Parent(ctx), o
	if o.Ephemeral { // a sweep finds it
		run.ExpiresAt = run.Timestamp
	}
	return facts
}

// Do appends what propose makes of the session's state, and has the tree
// driven. agentType is a new session's. hooks, if not nil, are those of the run that is
// proposed.
func (c *Core) Do(ctx context.Context, session, agentType string, hooks *agentloop.Hooks, propose Propose) (Started, error) {
	var run, proposed string
	t, ticket, err := c.AppendWork(ctx, session, agentType, Always, func(t *projector.Tree) (facts []record.Draft, err error) {
		c.Node.Detach(session, proposed) // another writer was first: there is no such run
		proposed = ""
		if facts, run, err = propose(t); err == nil && len(facts) > 0 && run != "" {
			proposed = run
			c.Node.Attach(session, run, hooks) // before a node can drive it
		}
		return facts, err
	})
	if err == nil {
		err = c.DispatchAsked(ctx, t, ticket)
	}
	if err != nil {
		c.Node.Detach(session, proposed)
		return Started{}, err
	}
	return Begun(session, run), nil
}

// AppendWork is Update for records that give a tree work: the tree is put on the work list
// before the first append, if it is needed there, and again if a node claims it before the
// records are appended: that node takes the ticket off the list when it has no more work.
func (c *Core) AppendWork(
	ctx context.Context, session, agentType string, needed func(*projector.Tree) bool, propose func(*projector.Tree) ([]record.Draft, error),
) (t *projector.Tree, ticket uint64, err error) {
	done, claim := func() {}, uint64(0) // the last one when the ticket was given
	defer func() { done() }()
	charged := admission.Admission{Quota: c.Quota}
	// An append whose outcome is unknown counts as none, until the read models see it.
	defer func() { charged.Done(t) }()
	t, err = c.Update(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		facts, err := propose(t)
		if err != nil || len(facts) == 0 {
			return facts, err
		}
		if err := charged.Admit(ctx, session, t, facts); err != nil {
			return nil, err
		}
		now := uint64(0)
		if t != nil && t.Claim != nil {
			now = t.Claim.Sequence
		}
		if ticket != 0 && claim == now || !needed(t) {
			return facts, nil
		}
		if t != nil && t.AgentType != "" {
			agentType = t.AgentType
		}
		defer done() // of the ticket before
		claim = now
		ticket, done, err = c.Node.Announce(ctx, agentType, session)
		return facts, err
	})
	return t, ticket, err
}

// Update appends what propose makes of the session's state (nil: there is no session),
// exactly once. It returns the state after that, nil with an error.
func (c *Core) Update(
	ctx context.Context, session string, propose func(*projector.Tree) ([]record.Draft, error),
) (*projector.Tree, error) {
	if err := eventlog.ValidateClientSessionID(session); err != nil {
		return nil, err
	}
	read := false
	t, err := c.States.Update(ctx, session, c.Clock.NewID, func(t *projector.Tree) ([]eventlog.Entry, error) {
		if read = true; c.Node.Ctx.Err() != nil {
			return nil, agentloop.ErrStopping
		}
		if err := MayUse(ctx, t); err != nil {
			return nil, err
		}
		facts, err := propose(t)
		if err != nil {
			return nil, err
		}
		record.SetActor(ctx, facts)
		return record.Entries(session, facts)
	})
	if !read && c.Node.Ctx.Err() != nil { // which explains why the log does not answer
		return nil, agentloop.ErrStopping
	}
	return t, err
}

// Change is Update for records that give a session no work. Those that begin one need the leave
// of its tenant's limits; others pass.
func (c *Core) Change(ctx context.Context, session string, propose func(*projector.Tree) ([]record.Draft, error)) (*projector.Tree, error) {
	return c.admitted(ctx, session, propose, (*admission.Admission).Admit)
}

// Store is Change for what a client stores in a session that exists: all of it counts.
func (c *Core) Store(ctx context.Context, session string, propose func(*projector.Tree) ([]record.Draft, error)) (*projector.Tree, error) {
	return c.admitted(ctx, session, propose, (*admission.Admission).AdmitStored)
}

func (c *Core) admitted(
	ctx context.Context, session string, propose func(*projector.Tree) ([]record.Draft, error),
	admit func(*admission.Admission, context.Context, string, *projector.Tree, []record.Draft) error,
) (*projector.Tree, error) {
	charged := admission.Admission{Quota: c.Quota}
	t, err := c.Update(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		facts, err := propose(t)
		if err == nil && len(facts) > 0 {
			err = admit(&charged, ctx, session, t, facts)
		}
		return facts, err
	})
	charged.Done(t)
	return t, err
}

// Always is for work that a tree must be on the list for, whatever its state.
func Always(*projector.Tree) bool { return true }
