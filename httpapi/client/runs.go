package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
)

// Message is a user's message.
type Message struct {
	Content  string             `json:"content"` // may be empty if there are files
	Files    []fact.MessageFile `json:"files,omitempty"`
	Metadata json.RawMessage    `json:"metadata,omitempty"` // a JSON object; nil: none
}

// MarshalJSON adds the role: it is the user's.
func (m Message) MarshalJSON() ([]byte, error) {
	type message Message
	return eventlog.Marshal(struct {
		Role string `json:"role"`
		message
	}{"user", message(m)})
}

// Text returns a message of nothing but text.
func Text(content string) []Message { return []Message{{Content: content}} }

// StartRequest is the body of POST /start.
type StartRequest struct {
	SessionID string            `json:"sessionId"`
	AgentType string            `json:"agentType"`
	Messages  []Message         `json:"message"`         // at least one
	State     json.RawMessage   `json:"state,omitempty"` // a JSON object; nil: the agent's own
	Metadata  map[string]string `json:"metadata,omitempty"`
	UserID    string            `json:"userId,omitempty"` // whose the session is, if it is new; at most 256 bytes
	Tags      []string          `json:"tags,omitempty"`   // what it is found by; at most 32 of at most 256 bytes
}

// Start begins a session; one that runs answers with its run. It is repeated:
// if the run is finished by then, that is ALREADY_COMPLETED.
func (c *Client) Start(ctx context.Context, r StartRequest) (api.Started, error) {
	return fetch(ctx, c, post("start", true, r), isStarted)
}

func isStarted(s *api.Started) bool { return s.SessionID != "" }

// ResumeRequest says how a session continues.
type ResumeRequest struct {
	SessionID string `json:"sessionId"`
	// Mode; empty: with_message if there are messages, otherwise continue.
	Mode         fact.RunMode `json:"mode,omitempty"`
	Messages     []Message    `json:"message,omitempty"`
	CheckpointID string       `json:"checkpointId,omitempty"` // of from_checkpoint
	Turn         int          `json:"turn,omitempty"`         // of retry, from 1; 0: the last one
	Approved     bool         `json:"-"`                      // of with_confirmation: decides all open approvals
}

// Resume begins a further run of a session. It is repeated only if it has neither message
// nor approval: a message would be sent twice, and an approval could answer another
// question.
func (c *Client) Resume(ctx context.Context, r ResumeRequest) (api.Started, error) {
	body := struct {
		ResumeRequest
		Approved *bool `json:"approved,omitempty"`
	}{ResumeRequest: r}
	if r.Approved || r.Mode == fact.ModeWithConfirmation {
		body.Approved = &r.Approved
	}
	goesOn := (r.Mode == "" || r.Mode == fact.ModeContinue) && len(r.Messages) == 0
	return fetch(ctx, c, post("resume", goesOn, body), isStarted)
}

// MessageRequest is a further message of a session's user.
type MessageRequest struct {
	SessionID string    `json:"-"`
	Messages  []Message `json:"message"`          // at least one
	UserID    string    `json:"userId,omitempty"` // empty, or the session's user
	// IdempotencyKey, of 1 to 256 bytes, makes the request repeatable; empty:
	// it is sent once.
	IdempotencyKey string `json:"-"`
}

// SendMessage begins a session's next turn, or continues one that was
// interrupted or waits. With an IdempotencyKey it is repeated: the answer is
// then the run that the first request has begun.
func (c *Client) SendMessage(ctx context.Context, r MessageRequest) (api.Started, error) {
	k := post("messages", r.IdempotencyKey != "", r).of("sessions", r.SessionID)
	if r.IdempotencyKey != "" {
		k.Header = map[string]string{api.HeaderIdempotency: r.IdempotencyKey}
	}
	return fetch(ctx, c, k, isStarted)
}

// Interrupt stops a session's run for now: it can be resumed. It returns when
// the run has stopped; INTERRUPT_DEADLINE_EXCEEDED means that it has not in
// time, but will. It is repeated.
func (c *Client) Interrupt(ctx context.Context, sessionID, reason string) error {
	return c.stop(ctx, "interrupt", sessionID, reason)
}

// Abort ends a session's run for good; otherwise as Interrupt.
func (c *Client) Abort(ctx context.Context, sessionID, reason string) error {
	return c.stop(ctx, "abort", sessionID, reason)
}

// stop is the body of a request to stop; on chat routes the path names the
// session.
type stop struct {
	SessionID string `json:"sessionId,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

func (c *Client) stop(ctx context.Context, route, sessionID, reason string) error {
	_, err := fetch[struct{}](ctx, c, post(route, true, stop{sessionID, reason}), nil)
	return err
}

// Status returns the status of a session's run.
func (c *Client) Status(ctx context.Context, sessionID string) (api.Status, error) {
	return fetch(ctx, c, get("status", url.Values{"sessionId": {sessionID}}), func(s *api.Status) bool { return s.Status != "" })
}
