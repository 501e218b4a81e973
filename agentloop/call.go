package agentloop

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/eventlog"
)

// Call is what an executing tool knows and may do. It is used by the tool's
// goroutines until Execute returns.
type Call struct {
	SessionInfo
	RunID    string // the run whose model turn asked for the call
	ToolName string
	ID       string // the tool call's id
	// IdempotencyKey is the same however often the call is executed, after a
	// crash, a resume or a takeover.
	IdempotencyKey string

	host CallHost
}

// CallHost does what a [Call] is asked for. After the call it refuses all but
// State.
type CallHost interface {
	// State returns the custom state as the call sees it.
	State() json.RawMessage
	// Update keeps an update of the custom state for the call's result.
	Update(update func(state json.RawMessage) ([]eventlog.PatchOp, error)) error
	// Emit appends a custom event; it returns when the event is durable.
	Emit(ctx context.Context, name string, data json.RawMessage) error
	// RecordUsage counts what the tool has used.
	RecordUsage(ctx context.Context, name string, amount float64) error
}

// NewCall returns a call that host serves. Loops make calls; so may tests of
// tools.
func NewCall(c Call, host CallHost) *Call {
	c.host = host
	return &c
}

// State returns the custom state as the call sees it: what was committed, with
// the call's own updates since its first one.
func (c *Call) State() json.RawMessage { return c.host.State() }

// GetState decodes the custom state into v.
func (c *Call) GetState(v any) error { return json.Unmarshal(c.State(), v) }

// Patch changes the custom state by RFC 6902 operations, under the terms of
// UpdateState.
func (c *Call) Patch(ops []eventlog.PatchOp) error {
	return c.update(func(json.RawMessage) ([]eventlog.PatchOp, error) { return ops, nil })
}

func (c *Call) update(u patch.Update) error { return c.host.Update(u) }

// Emit appends a custom event; it returns when the event is durable.
func (c *Call) Emit(ctx context.Context, name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	return c.host.Emit(ctx, name, raw)
}

// RecordUsage counts something that the call has used: amount is added to what
// the tool has recorded under the name. It returns when that is durable. It counts
// also if the call fails, and again if the call is executed again.
func (c *Call) RecordUsage(ctx context.Context, name string, amount float64) error {
	return c.host.RecordUsage(ctx, name, amount)
}
