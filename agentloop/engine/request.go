package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/admission"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/tracing"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// knows reports whether the session has one of the messages already: a client that repeats
// it has missed the answer.
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
// and which run the answer names. It is called again if another writer was first.
type propose func(t *projector.Tree) (facts []record.Draft, run string, err error)

// request appends what propose makes of the session's state, and has the tree
// driven. agentType is a new session's.
func (l *Loop) request(ctx context.Context, session, agentType string, propose propose) (Started, error) {
	var run string
	t, ticket, err := l.appendWork(ctx, session, agentType, always, func(t *projector.Tree) (facts []record.Draft, err error) {
		facts, run, err = propose(t)
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

// appendWork is update for records that give a tree work: the tree is put on the work list
// before the first append, if it is needed there.
func (l *Loop) appendWork(
	ctx context.Context, session, agentType string, needed func(*projector.Tree) bool, propose func(*projector.Tree) ([]record.Draft, error),
) (t *projector.Tree, ticket uint64, err error) {
	done := func() {}
	defer func() { done() }()
	charged := admission.Admission{Quota: l.opts.Quota}
	// An append whose outcome is unknown counts as none, until the read models see it.
	defer func() { charged.Done(t) }()
	t, err = l.update(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		facts, err := propose(t)
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

// update appends what propose makes of the session's state (nil: there is no session),
// exactly once. It returns the state after that, nil with an error.
func (l *Loop) update(
	ctx context.Context, session string, propose func(*projector.Tree) ([]record.Draft, error),
) (*projector.Tree, error) {
	if err := eventlog.ValidateClientSessionID(session); err != nil {
		return nil, err
	}
	read := false
	t, err := l.states.Update(ctx, session, l.opts.NewID, func(t *projector.Tree) ([]eventlog.Entry, error) {
		if read = true; l.ctx.Err() != nil {
			return nil, agentloop.ErrStopping
		}
		facts, err := propose(t)
		if err != nil {
			return nil, err
		}
		record.SetActor(ctx, facts)
		return record.Entries(session, facts)
	})
	if !read && l.ctx.Err() != nil { // which explains why the log does not answer
		return nil, agentloop.ErrStopping
	}
	return t, err
}
