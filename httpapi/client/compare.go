package client

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Moment is a session at a sequence.
type Moment struct {
	SessionID string
	At        *uint64 // nil: the head
}

// Comparison is two sessions, or one, each at a moment.
type Comparison struct {
	A Compared `json:"a"`
	B Compared `json:"b"`
	// Common is how many messages at the front say the same in both, whenever
	// and under whatever ids they were said.
	Common int `json:"common"`
	// Patch turns the custom state of A into that of B (RFC 6902).
	Patch []eventlog.PatchOp `json:"patch"`
	// ForkedFrom names the one of the two that the other was forked from, and
	// where; nil: neither was.
	ForkedFrom *projector.Fork `json:"forkedFrom,omitempty"`
}

// Compared is one side of a comparison: the fold of the session's records with
// a sequence <= Sequence.
type Compared struct {
	SessionID string                  `json:"sessionId"`
	Sequence  uint64                  `json:"sequence"`
	Status    projector.SessionStatus `json:"status"` // empty: before everything
	AgentType string                  `json:"agentType"`
	Messages  []projector.Message     `json:"messages"`  // of the session itself
	ToolCalls []CallAt                `json:"toolCalls"` // of the tree
	// Spent is what the tree has used so far. A fork begins at nothing.
	Spent
	// Steps are those of the session itself, as far as its own log holds them.
	Steps []projector.StepTime `json:"steps"`
}

// CallAt is a tool call of a session's tree as it was at a sequence.
type CallAt struct {
	SessionID  string          `json:"sessionId"` // whose model asked for it
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Arguments  json.RawMessage `json:"arguments"`
	Status     CallStatus      `json:"status"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// Compare returns two moments beside each other.
func (c *Client) Compare(ctx context.Context, a, b Moment) (Comparison, error) {
	q := url.Values{"a": {a.SessionID}, "b": {b.SessionID}}
	for name, at := range map[string]*uint64{"aAt": a.At, "bAt": b.At} {
		if at != nil {
			q.Set(name, strconv.FormatUint(*at, 10))
		}
	}
	k := get("compare", q)
	for _, m := range []Moment{a, b} {
		if err := eventlog.ValidateSessionID(m.SessionID); err != nil {
			k.err = err
		}
	}
	return fetch(ctx, c, k, func(c *Comparison) bool { return c.Patch != nil })
}
