package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// MessageRequest is a further message of a session's user.
type MessageRequest struct {
	SessionID string
	Messages  []agentloop.Input // at least one
	// UserID must be the session's user, if the session has one and UserID is
	// not empty.
	UserID string
	// Key names the request, so that it can be repeated; empty: see
	// [Loop.SendMessage]. It is stored as the MessageID of the last message.
	Key string
	// Hooks, if set, are called for the run that the request begins while this
	// process drives it.
	Hooks *agentloop.Hooks
}

// SendMessage begins the next turn of a session, whose agent answers. If the
// last turn is open because its run was interrupted, waits or crashed, the
// message continues that turn as [Loop.Resume] with_message does.
//
// A request that is repeated while its run is live answers with that run. With
// a Key this holds for as long as the session has the message: a rollback to
// before it forgets the key. A rollback that keeps the message and truncates its
// run has the next such request begin another run, without the message.
//
// Errors: eventlog.ErrSessionNotFound, ErrOtherUser, ErrAlreadyRunning if
// another run is live, ErrAlreadyCompleted if the session is being aborted,
// ErrKeyUsed, ErrUnknownAgent, *eventlog.ValidationError, and the log's errors.
func (l *Loop) SendMessage(ctx context.Context, req MessageRequest) (Started, error) {
	if len(req.Messages) == 0 {
		return Started{}, &eventlog.ValidationError{Field: "message", Reason: "is required"}
	}
	if err := request.CheckInputs(req.Messages); err != nil {
		return Started{}, err
	}
	messages := slices.Clone(req.Messages)
	if req.Key != "" {
		messages[len(messages)-1].MessageID = req.Key
	}
	for {
		more := false
		s, err := l.requests.Do(ctx, req.SessionID, "", req.Hooks, func(t *projector.Tree) (facts []record.Draft, run string, err error) {
			run, known, err := earlier(t, req, messages)
			if run != "" || err != nil {
				return nil, run, err
			}
			mode, lacks := fact.ModeWithMessage, messages
			if known { // a rollback has kept the message and truncated its run
				mode, lacks = fact.ModeContinue, nil
			}
			if t.Turn != nil {
				facts, run, more, err = l.resumption(ctx, t, ResumeRequest{
					SessionID: req.SessionID, Mode: mode, Messages: lacks,
				})
				return facts, run, err
			}
			if err := l.requests.Hosted(ctx, t.AgentType); err != nil {
				return nil, "", err
			}
			facts = l.requests.NewRun(ctx, req.SessionID, fact.ModeStart, lacks, fact.RunOptions{})
			run = facts[len(facts)-1].Run
			return facts, run, nil
		})
		if err != nil || !more {
			return s, err
		}
	}
}

// earlier returns the run of an earlier, equal request, or why the
// session does not accept the message. known says that the session has the
// message of a request with the same key.
func earlier(t *projector.Tree, req MessageRequest, messages []agentloop.Input) (run string, known bool, err error) {
	switch {
	case t == nil:
		return "", false, eventlog.ErrSessionNotFound
	case req.UserID != "" && t.UserID != "" && req.UserID != t.UserID:
		return "", false, agentloop.ErrOtherUser
	}
	if req.Key != "" {
		for i := range t.Messages {
			m := &t.Messages[i]
			inherited := t.ForkedFrom != nil && m.Sequence == t.ForkedFrom.Record
			if m.MessageID == req.Key && !inherited {
				if !same(m, messages[len(messages)-1]) {
					return "", true, agentloop.ErrKeyUsed
				}
				return runOf(t, m), true, nil
			}
		}
		return "", false, nil
	}
	if t.Running() && began(t, messages) {
		return t.Turn.RunID, false, nil
	}
	return "", false, nil
}

// runOf returns the run that was requested with a message.
func runOf(t *projector.Tree, m *projector.Message) string {
	for _, run := range t.Runs {
		if !run.Truncated && run.StartSequence >= m.Sequence {
			return run.RunID
		}
	}
	return ""
}

// began reports whether the current run was requested with these messages.
func began(t *projector.Tree, messages []agentloop.Input) bool {
	run := t.CurrentRun()
	if run.Mode != fact.ModeStart && run.Mode != fact.ModeWithMessage {
		return false
	}
	i := len(messages)
	for _, m := range slices.Backward(t.Messages) {
		switch {
		case m.Sequence > run.StartSequence:
			continue
		case i == 0: // the run was requested with these and no others
			return m.Role != projector.RoleUser || runOf(t, &m) != run.RunID
		case m.Role != projector.RoleUser || !same(&m, messages[i-1]) || runOf(t, &m) != run.RunID:
			return false
		}
		i--
	}
	return i == 0
}

// same reports whether a session's message is what a client has sent.
func same(m *projector.Message, in agentloop.Input) bool {
	return m.Content == in.Content && slices.Equal(m.Files, in.Files) && bytes.Equal(compact(m.Metadata), compact(in.Metadata))
}

// compact returns JSON as it is stored.
func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return nil // absent; the record's validation refuses what is no JSON
	}
	return b.Bytes()
}
