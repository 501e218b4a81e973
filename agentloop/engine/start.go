package engine

import (
	"context"
	"encoding/json"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// StartRequest begins a session.
type StartRequest struct {
	SessionID string
	AgentType string
	Messages  []agentloop.Input // at least one
	State     json.RawMessage
	UserID    string
	Tenant    string // a new session's
	Tags      []string
	Metadata  map[string]string
	// Branch makes the session a fork of another one, if it is new (Execute
	// only).
	Branch *timetravel.ForkRequest
	// MergeState is an object: its members replace those of the state of a session that
	// exists. nil: nothing changes.
	MergeState json.RawMessage
	// Options are what the request asks of this run alone. If a run of the session has
	// their name, it is the answer.
	Options fact.RunOptions
	// After, if set, is the run that must be the session's last one, and not deleted: if not,
	// ErrNotLast.
	After string
	// Existing: if there is no such session, eventlog.ErrSessionNotFound, and none is made.
	Existing bool
	// Hooks, if set, are notified of the run that the request begins, while this
	// process drives it.
	Hooks *agentloop.Hooks
}

// Start begins the first run of a session. It is idempotent: a session whose
// run continues, or died without an end, answers with that run, and drives
// it if no node does. When it returns, the request is durable.
//
// Errors: ErrUnknownAgent, ErrAlreadyCompleted, ErrUseResume, ErrOtherAgent and,
// if it has a run, ErrAlreadyRunning for another agent,
// *eventlog.ValidationError, *quota.Exceeded, and what the log returns.
func (l *Loop) Start(ctx context.Context, req StartRequest) (Started, error) {
	return l.begin(ctx, req, func(t *projector.Tree) (run string, err error) {
		switch {
		case t.Status == projector.SessionCompleted || t.Status == projector.SessionFailed:
			return "", agentloop.ErrAlreadyCompleted
		case t.AgentType != "" && t.AgentType != req.AgentType:
			return "", otherAgent(t)
		case t.Turn == nil: // only outside producers wrote, or all was rolled back
			return "", nil
		case t.Status != projector.SessionActive || t.Suspended():
			return "", agentloop.ErrUseResume
		}
		return t.Turn.RunID, nil
	})
}

// otherAgent is why another agent than the session's can't run in it.
func otherAgent(t *projector.Tree) error {
	if t.Running() {
		return agentloop.ErrAlreadyRunning
	}
	return agentloop.ErrOtherAgent
}

// Execute begins a run: of a new session, or a further turn of one whose last
// turn is finished, which sees the whole conversation.
//
// Errors: as Start, but for ErrAlreadyCompleted; ErrAlreadyRunning if the
// last turn continues, ErrUseResume if it waits; ErrMessageKnown.
func (l *Loop) Execute(ctx context.Context, req StartRequest) (*Handle, error) {
	if req.Branch != nil {
		branch := *req.Branch
		branch.NewSessionID = req.SessionID
		branch.Run, branch.Messages = false, nil // it runs below
		if _, err := l.TimeTravel.Fork(ctx, branch); err != nil {
			return nil, err
		}
	}
	s, err := l.begin(ctx, req, func(t *projector.Tree) (string, error) {
		switch {
		case t.AgentType != "" && t.AgentType != req.AgentType:
			return "", otherAgent(t)
		case t.Turn == nil:
			return "", nil
		case req.Branch != nil && len(t.Runs) == 0: // an open turn continues with the message
			return "", nil
		case t.Running():
			return "", agentloop.ErrAlreadyRunning
		}
		return "", agentloop.ErrUseResume
	})
	if err != nil {
		return nil, err
	}
	return &Handle{SessionID: s.SessionID, RunID: s.RunID, l: l}, nil
}

// begin requests a run, unless found, which judges a session that exists,
// names one.
func (l *Loop) begin(ctx context.Context, req StartRequest, found func(*projector.Tree) (string, error)) (Started, error) {
	initial, err := l.requests.InitialState(ctx, req.AgentType)
	if err != nil {
		return Started{}, err
	}
	if len(req.Messages) == 0 {
		return Started{}, &eventlog.ValidationError{Field: "message", Reason: "is required"}
	}
	if err := request.CheckInputs(req.Messages); err != nil {
		return Started{}, err
	}
	if err := plan.CheckClientTools(l.agents.Defs()[req.AgentType], req.Options.Tools); err != nil {
		return Started{}, err
	}
	return l.requests.Do(ctx, req.SessionID, req.AgentType, req.Hooks, func(t *projector.Tree) (facts []record.Draft, run string, err error) {
		if t == nil && req.Existing {
			return nil, "", eventlog.ErrSessionNotFound
		}
		if t == nil {
			state := req.State
			if state == nil {
				state = initial
			}
			facts = []record.Draft{{Fact: &fact.SessionCreated{
				AgentType: req.AgentType, State: state, UserID: req.UserID, Tenant: req.Tenant, Tags: req.Tags, Metadata: req.Metadata,
				Base: l.clock.FactBase(req.SessionID),
			}}}
		} else if named := t.RunNamed(req.Options.Name); named != nil {
			return nil, named.RunID, nil
		} else if err := isLast(t, req.After); err != nil {
			return nil, "", err
		} else if knows(t, req.Messages) {
			return nil, "", agentloop.ErrMessageKnown
		} else if run, err = found(t); run != "" || err != nil {
			return nil, run, err
		}
		mode := fact.ModeStart
		if t != nil && t.Turn != nil {
			mode = fact.ModeWithMessage
			facts = append(facts, l.clock.AbandonAll(t)...)
		}
		facts = append(facts, l.requests.NewRun(ctx, req.SessionID, mode, req.Messages, req.Options)...)
		run = facts[len(facts)-1].Run
		if t != nil && t.AgentType == "" {
			facts[len(facts)-1].Fact.(*fact.RunRequested).AgentType = req.AgentType
		}
		if t != nil {
			merged, err := mergeState(l.clock, t, req.AgentType, req.MergeState)
			if err != nil {
				return nil, "", err
			}
			facts = append(facts, merged...)
		}
		return facts, run, nil
	})
}
