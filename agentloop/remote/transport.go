package remote

import (
	"context"
	"encoding/json"
	"iter"
)

// Transport speaks to a remote agent server. Package remotehttp has one.
//
// Errors of all methods: [*Error] for what the server refuses,
// [ErrUnreachable], [ErrMalformed], [ErrTooLarge], and the cause of a context
// that has ended.
type Transport interface {
	// Start begins a session. A session that runs answers with its ids.
	Start(ctx context.Context, req StartRequest) (Started, error)
	// Resume begins a further run of a session that waits.
	Resume(ctx context.Context, req ResumeRequest) (Started, error)
	// Stream yields the events after sequence from, then what is live, until
	// an EndEvent or an ErrorEvent. Without one, an error is last:
	// [ErrStreamDropped] means that the caller can continue from the last
	// sequence that it saw, which is what [Follow] does.
	Stream(ctx context.Context, sessionID string, from uint64) iter.Seq2[Event, error]
	Status(ctx context.Context, sessionID string) (Status, error)
	// Interrupt stops the session's run for now: it can be resumed.
	Interrupt(ctx context.Context, sessionID, reason string) error
	// Abort stops the session for good.
	Abort(ctx context.Context, sessionID, reason string) error
}

// StartRequest is the body of POST /start.
type StartRequest struct {
	SessionID string            `json:"sessionId"`
	AgentType string            `json:"agentType"`
	Message   string            `json:"message"`
	State     json.RawMessage   `json:"state,omitempty"` // a JSON object; nil: the agent's own
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// ResumeRequest is the body of POST /resume.
type ResumeRequest struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message,omitempty"` // empty: the run continues without one
}

// Started is the answer of POST /start and /resume.
type Started struct {
	SessionID string `json:"sessionId"`
	StreamID  string `json:"streamId"`
	RunID     string `json:"runId"`
}

// Values of [Status.Status].
const (
	StatusRunning     = "running"
	StatusCompleted   = "completed"
	StatusFailed      = "failed"
	StatusInterrupted = "interrupted"
	StatusPaused      = "paused"
)

// Status is the answer of GET /status.
type Status struct {
	SessionID      string          `json:"sessionId"`
	RunID          string          `json:"runId,omitempty"`
	Status         string          `json:"status"` // one of the constants; others may come from later versions
	StepCount      int             `json:"stepCount"`
	Output         json.RawMessage `json:"output,omitempty"`
	State          json.RawMessage `json:"state,omitempty"` // the custom state
	Error          string          `json:"error,omitempty"` // why it failed, fit to be shown
	IsExecuting    bool            `json:"isExecuting"`     // false beside running: nobody drives the run
	StreamID       string          `json:"streamId"`
	LatestSequence uint64          `json:"latestSequence"` // usable as Stream's from; not always a chunk's
}
