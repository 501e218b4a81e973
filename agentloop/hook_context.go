package agentloop

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/eventlog"
)

// HookContext is what a hook knows of the session that it is called for, and
// may do there, until it returns.
type HookContext struct {
	SessionID       string
	AgentType       string
	StreamID        string // of the root, in whose stream the session's chunks are
	RunID           string
	StepCount       int    // committed steps of the turn
	ParentSessionID string // of a sub-agent's session, else empty

	// Of the root.
	UserID   string
	Tags     []string
	Metadata map[string]string

	host HookHost
}

// HookHost does what a [HookContext] is asked for. After the hook it refuses
// all but State.
type HookHost interface {
	// State returns the custom state as it is now.
	State() json.RawMessage
	// Update appends an update of the custom state.
	Update(update func(state json.RawMessage) ([]eventlog.PatchOp, error)) error
	// Emit appends a chunk of content with the session's base.
	Emit(c eventlog.Chunk) error
}

// NewHookContext returns a context that host serves. Loops make contexts; so may
// tests of hooks.
func NewHookContext(h HookContext, host HookHost) *HookContext {
	h.host = host
	return &h
}

// State returns the custom state as it is now.
func (h *HookContext) State() json.RawMessage { return h.host.State() }

// GetState decodes the custom state into v.
func (h *HookContext) GetState(v any) error { return json.Unmarshal(h.State(), v) }

// Patch changes the custom state by RFC 6902 operations, under the terms of
// [UpdateState].
func (h *HookContext) Patch(ops []eventlog.PatchOp) error {
	return h.update(func(json.RawMessage) ([]eventlog.PatchOp, error) { return ops, nil })
}

func (h *HookContext) update(u patch.Update) error { return h.host.Update(u) }

// Emit appends a chunk of content to the stream and returns when it is
// durable: a custom event, a source, a file, text or reasoning. Its base is
// filled in. Text is no part of the model's answer.
func (h *HookContext) Emit(c eventlog.Chunk) error { return h.host.Emit(c) }

// EmitCustom appends a custom event; it returns when the event is durable.
func (h *HookContext) EmitCustom(name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	return h.Emit(&eventlog.CustomEvent{EventName: name, Data: raw})
}
