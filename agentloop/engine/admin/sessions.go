package admin

import (
	"context"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// CreateRequest makes a session without a run, and without an agent: its first run names one.
type CreateRequest struct {
	SessionID string
	UserID    string
	Tenant    string
	Tags      []string
	Metadata  map[string]string
	Messages  []agentloop.Input // with which the conversation begins; may be empty
}

// Create makes a session. Errors: ErrSessionExists, *eventlog.ValidationError,
// *quota.Exceeded, and the log's errors.
func (a *Admin) Create(ctx context.Context, req CreateRequest) error {
	if err := request.CheckInputs(req.Messages); err != nil {
		return err
	}
	_, err := a.requests.Change(ctx, req.SessionID, func(t *projector.Tree) ([]record.Draft, error) {
		if t != nil {
			return nil, agentloop.ErrSessionExists
		}
		created := record.Draft{Fact: &fact.SessionCreated{
			State: []byte("{}"), UserID: req.UserID, Tenant: req.Tenant, Tags: req.Tags, Metadata: req.Metadata,
			Base: a.requests.Clock.FactBase(req.SessionID),
		}}
		return append([]record.Draft{created}, a.requests.Clock.Messages(req.SessionID, "", req.Messages)...), nil
	})
	return err
}

// AddMessages appends messages to the conversation of a session that does not run. No agent
// answers them: the next run's does. Their records are those after after, up to last. If the
// session has one of them already, by its id, the request is a repetition: nothing is appended.
//
// Errors: eventlog.ErrSessionNotFound, ErrAlreadyRunning, ErrUseResume if the last turn waits
// or was interrupted, *eventlog.ValidationError, *quota.Exceeded, and the log's errors.
func (a *Admin) AddMessages(ctx context.Context, session string, messages []agentloop.Input) (after, last uint64, err error) {
	if err := request.CheckInputs(messages); err != nil {
		return 0, 0, err
	}
	known := false
	t, err := a.requests.Store(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		if t == nil {
			return nil, eventlog.ErrSessionNotFound
		}
		switch after, last, known = placeOf(t, messages); {
		case known:
			return nil, nil
		case t.Running():
			return nil, agentloop.ErrAlreadyRunning
		case t.Turn != nil:
			return nil, agentloop.ErrUseResume
		}
		return a.requests.Clock.Messages(session, "", messages), nil
	})
	if err != nil || known {
		return after, last, err
	}
	return t.Head - uint64(len(messages)), t.Head, nil
}

// placeOf returns where a session has messages, which were appended together; false if it has none of
// them.
func placeOf(t *projector.Tree, messages []agentloop.Input) (after, last uint64, known bool) {
	ids := map[string]bool{}
	for _, m := range messages {
		if m.Added != nil {
			m.MessageID = m.Added.MessageID
		}
		ids[m.MessageID] = m.MessageID != ""
	}
	for _, m := range t.Messages {
		if !ids[m.MessageID] {
			continue
		}
		if last = m.Sequence; !known {
			after, known = m.Sequence-1, true
		}
	}
	return after, last, known
}

// ReplaceMetadata gives a session other metadata. Errors: eventlog.ErrSessionNotFound,
// *quota.Exceeded, and the log's errors.
func (a *Admin) ReplaceMetadata(ctx context.Context, session string, metadata map[string]string) error {
	_, err := a.requests.Store(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		if t == nil {
			return nil, eventlog.ErrSessionNotFound
		}
		return []record.Draft{{Fact: &fact.MetadataReplaced{Metadata: metadata, Base: a.requests.Clock.FactBase(session)}}}, nil
	})
	return err
}

// DeleteRun hides a run of a session from clients that name it; what it has said stays in the
// conversation. A run that is hidden already stays so. Errors: eventlog.ErrSessionNotFound,
// ErrNothingToResume if the session has no such run, and the log's errors.
func (a *Admin) DeleteRun(ctx context.Context, session, run string) error {
	_, err := a.requests.Change(ctx, session, func(t *projector.Tree) ([]record.Draft, error) {
		if t == nil {
			return nil, eventlog.ErrSessionNotFound
		}
		switch r := t.RunOf(run); {
		case r == nil:
			return nil, agentloop.ErrNothingToResume
		case r.Deleted:
			return nil, nil
		}
		return []record.Draft{{Run: run, Fact: &fact.RunDeleted{RunID: run, Base: a.requests.Clock.FactBase(session)}}}, nil
	})
	return err
}
