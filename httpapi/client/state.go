package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// StateAt is the whole state of a session's tree: the fold of its records with
// a sequence <= Sequence.
type StateAt struct {
	Sequence uint64          `json:"sequence"`
	State    *projector.Tree `json:"state"`
}

func isState(s *StateAt) bool { return s.State != nil }

// State returns the whole state of a session now.
func (c *Client) State(ctx context.Context, sessionID string) (StateAt, error) {
	return fetch(ctx, c, get("state", nil).of("sessions", sessionID), isState)
}

// StateAt returns the whole state of a session as it was at a sequence.
func (c *Client) StateAt(ctx context.Context, sessionID string, at uint64) (StateAt, error) {
	q := url.Values{"at": {strconv.FormatUint(at, 10)}}
	return fetch(ctx, c, get("state", q).of("sessions", sessionID), isState)
}

// DiffSpent is what was used and how long it took between two sequences: by the
// whole tree, what a rollback has truncated included. It is negative on the way
// back.
type DiffSpent struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	Spent
}

// StateDiff is how the state of a session's tree has changed.
type StateDiff struct {
	DiffSpent
	// Patch turns the state at From into the state at To, as StateAt has them
	// in JSON (RFC 6902).
	Patch []eventlog.PatchOp `json:"patch"`
	// Messages are those of the session itself that are in the state at To and
	// came behind From; none if that lies before it.
	Messages []projector.Message `json:"messages"`
	// ToolCalls are those of the tree that have come further, or back.
	ToolCalls []CallChange `json:"toolCalls"`
}

// CallStatus is how far a tool call has come: pending, running, waiting, done
// or failed; empty: there is none yet, or no more.
type CallStatus string

// CallChange is a tool call that has come further between two sequences.
type CallChange struct {
	SessionID  string     `json:"sessionId"` // whose model asked for it
	ToolCallID string     `json:"toolCallId"`
	ToolName   string     `json:"toolName"`
	Before     CallStatus `json:"before"`
	After      CallStatus `json:"after"`
	// Result is there if it is done at the second one, Error if it has failed
	// with one.
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Spent is what a session's tree has used and how long it took.
type Spent struct {
	Usage eventlog.TokenUsage `json:"usage"`
	// Cost is what the tokens cost by the prices of now, in USD; nil: not all
	// prices are known.
	Cost *float64 `json:"cost,omitempty"`
	// Unpriced are the models that were used and have no price.
	Unpriced   []string `json:"unpriced,omitempty"`
	DurationMs int64    `json:"durationMs"`
}

// Diff returns how the state has changed between two sequences; a nil to is
// the head. If to lies before from, the patch leads back.
func (c *Client) Diff(ctx context.Context, sessionID string, from uint64, to *uint64) (StateDiff, error) {
	return fetch(ctx, c, get("diff", between(from, to)).of("sessions", sessionID), func(d *StateDiff) bool { return d.Patch != nil })
}

// Spent is what [Client.Diff] tells of what was used, without the rest, which
// grows with the conversation.
func (c *Client) Spent(ctx context.Context, sessionID string, from uint64, to *uint64) (DiffSpent, error) {
	q := between(from, to)
	q.Set("only", "spent")
	return fetch[DiffSpent](ctx, c, get("diff", q).of("sessions", sessionID), nil)
}

func between(from uint64, to *uint64) url.Values {
	q := url.Values{"from": {strconv.FormatUint(from, 10)}}
	if to != nil {
		q.Set("to", strconv.FormatUint(*to, 10))
	}
	return q
}

// Workspace is what there is of a session's workspace (document 004).
type Workspace struct {
	Name         string                         `json:"name"`
	ProviderID   string                         `json:"providerId"` // the kind
	Status       projector.WorkspaceStatus      `json:"status"`
	Capabilities []eventlog.WorkspaceCapability `json:"capabilities"`
	OpenedAt     int64                          `json:"openedAt,omitempty"`   // ms since the epoch
	LastUsedAt   int64                          `json:"lastUsedAt,omitempty"` // ms since the epoch
	Error        string                         `json:"error,omitempty"`
	Ref          json.RawMessage                `json:"ref,omitempty"` // opaque
}

// Workspace describes a session's workspace; nil: it has none.
func (c *Client) Workspace(ctx context.Context, sessionID string) (*Workspace, error) {
	type answer struct {
		Workspace json.RawMessage `json:"workspace"`
	}
	q := url.Values{"sessionId": {sessionID}}
	a, err := fetch(ctx, c, get("workspace", q), func(a *answer) bool { return a.Workspace != nil })
	if err != nil {
		return nil, err
	}
	var w *Workspace
	if err := json.Unmarshal(a.Workspace, &w); err != nil {
		return nil, fmt.Errorf("%w: the workspace is no JSON object", ErrMalformed)
	}
	return w, nil
}
