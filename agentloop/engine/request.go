package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/admission"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// knows reports whether the session has one of the messages already: who sends
// it again has missed the answer.
func knows(t *projector.Tree, messages []agentloop.Input) bool {
	return slices.ContainsFunc(messages, func(in agentloop.Input) bool {
		return in.MessageID != "" && slices.ContainsFunc(t.Messages, func(m projector.Message) bool {
			return m.MessageID == in.MessageID && m.Content == in.Content
		})
	})
}

// Started names the run that a request began or found.
type Started struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	RunID     string `json:"runId"`
}

func started(session, run string) Started {
	return Started{SessionID: session, StreamID: session, RunID: run}
}

// checkInputs refuses what a user's message must not have.
func checkInputs(messages []agentloop.Input) error {
	for _, m := range messages {
		var meta map[string]json.RawMessage
		if m.Metadata == nil || json.Unmarshal(m.Metadata, &meta) != nil {
			continue // it is validated with its record
		}
		if _, ours := meta[projector.OwnMetadata]; ours {
			return &eventlog.ValidationError{Field: "metadata." + projector.OwnMetadata, Reason: "is reserved"}
		}
	}
	return nil
}

// askedRun is newRun for a request from outside, which may have a place in a
// trace.
func (l *Loop) askedRun(ctx context.Context, session string, mode eventlog.RunMode, messages []agentloop.Input) []record.Draft {
	facts := l.clock.NewRun(session, mode, messages)
	facts[len(facts)-1].Fact.(*eventlog.RunRequested).TraceParent = tracing.Parent(ctx)
	return facts
}

// propose returns what to append to a session in state t (nil: there is none),
// and which run the answer names. It is called again when somebody else has
// written in between.
type propose func(t *projector.Tree) (facts []record.Draft, run string, err error)

// request appends what plan makes of the session's state, and has the tree
// driven. agentType is a new session's.
func (l *Loop) request(ctx context.Context, session, agentType string, plan propose) (Started, error) {
	var run string
	t, ticket, err := l.appendWork(ctx, session, agentType, always, func(t *projector.Tree) (facts []record.Draft, err error) {
		facts, run, err = plan(t)
		return facts, err
	})
	if err != nil {
		l.node.Detach(session, run)
		return Started{}, err
	}
	if err := l.dispatchAsked(ctx, t, ticket); err != nil {
		return Started{}, err
	}
	return started(session, run), nil
}

func always(*projector.Tree) bool { return true }

// appendWork is appendPlan for what somebody has to drive: the tree is on the
// queue's list before the first append, where that is needed.
func (l *Loop) appendWork(
	ctx context.Context, session, agentType string, needed func(*projector.Tree) bool, plan func(*projector.Tree) ([]record.Draft, error),
) (t *projector.Tree, ticket uint64, err error) {
	done := func() {}
	defer func() { done() }()
	charged := admission.Admission{Quota: l.opts.Quota}
	defer func() { charged.Done(appendedTo(t, err)) }()
	t, err = l.appendPlan(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		facts, err := plan(t)
		if err != nil || len(facts) == 0 {
			return facts, err
		}
		if err := charged.Admit(ctx, session, t, facts); err != nil {
			return nil, err
		}
		if ticket != 0 || !needed(t) {
			return facts, nil
		}
		if t != nil && t.AgentType != "" {
			agentType = t.AgentType
		}
		ticket, done, err = l.node.Announce(ctx, agentType, session)
		return facts, err
	})
	return t, ticket, err
}

// appendedTo returns the state behind an append, nil if there was none. Whether
// there was one that nobody has answered is not known: it counts as none, until the
// read models see it.
func appendedTo(t *projector.Tree, err error) *projector.Tree {
	if err != nil {
		return nil
	}
	return t
}

// appendPlan appends what plan makes of the session's state, exactly once. It
// returns the state behind that.
func (l *Loop) appendPlan(
	ctx context.Context, session string, plan func(*projector.Tree) ([]record.Draft, error),
) (*projector.Tree, error) {
	if err := eventlog.ValidateClientSessionID(session); err != nil {
		return nil, err
	}
	t, err := l.states.Head(ctx, session)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		t, err = nil, nil
	}
	again := false
	err = eventlog.Contend(ctx, l.log, session, func(ctx context.Context) error {
		if again {
			t, err = l.caughtUp(ctx, session, t)
		}
		again = true
		switch {
		case l.ctx.Err() != nil:
			return agentloop.ErrStopping
		case err != nil:
			return err
		}
		facts, err := plan(t)
		if err != nil || len(facts) == 0 {
			return err
		}
		record.SetActor(ctx, facts)
		entries, err := record.Entries(session, facts)
		if err != nil {
			return err
		}
		var head uint64
		if t != nil {
			head = t.Head
		}
		last, err := eventlog.AppendOnce(ctx, l.log, session, l.opts.NewID(), head, entries)
		if err != nil {
			return err
		}
		if t == nil {
			t = new(projector.Tree)
		}
		for i, e := range entries {
			projector.Apply(t, eventlog.Record{Sequence: last + 1 - uint64(len(entries)-i), Entry: e})
		}
		return nil
	})
	return t, err
}

// caughtUp applies to t what others have written since.
func (l *Loop) caughtUp(ctx context.Context, session string, t *projector.Tree) (*projector.Tree, error) {
	if t == nil {
		return l.states.Head(ctx, session)
	}
	for r, err := range eventlog.Behind(ctx, l.log, session, t.Head) {
		if err != nil {
			return nil, err
		}
		projector.Apply(t, r)
	}
	return t, nil
}
