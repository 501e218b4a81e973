package agentloop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
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

	t   *task
	ctx context.Context

	mu   sync.Mutex
	over bool
}

// errHookOver: the hook has returned, or has taken too long.
var errHookOver = errors.New("agentloop: the hook is over")

func newHookContext(ctx context.Context, t *task) *HookContext {
	h := &HookContext{SessionID: t.session, StreamID: t.root, RunID: t.runID, t: t, ctx: ctx}
	t.look(func(s *projector.Session) {
		h.AgentType, h.StepCount = s.AgentType, s.StepCount
		if s.Child != nil {
			h.ParentSessionID = s.Child.ParentSessionID
		}
		h.UserID, h.Tags, h.Metadata = t.tree.UserID, slices.Clone(t.tree.Tags), maps.Clone(t.tree.Metadata) // others read them
	})
	return h
}

// end refuses what the hook does from now on.
func (h *HookContext) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}

// State returns the custom state as it is now.
func (h *HookContext) State() json.RawMessage { return h.t.customState() }

// GetState decodes the custom state into v.
func (h *HookContext) GetState(v any) error { return json.Unmarshal(h.State(), v) }

// Patch changes the custom state by RFC 6902 operations, under the terms of
// [UpdateState].
func (h *HookContext) Patch(ops []eventlog.PatchOp) error {
	return h.update(func(json.RawMessage) ([]eventlog.PatchOp, error) { return ops, nil })
}

// update makes an update on the state as it is now and appends it. The update
// itself runs outside of the lock: it is the hook's code.
func (h *HookContext) update(u update) error {
	for range maxUpdates {
		state, left := h.t.patchable()
		_, rest, patches, err := replay(state, left, []update{u})
		if err != nil || len(patches) == 0 {
			return err
		}
		if done, err := h.commit(state, left-rest, patches[0]); done || err != nil {
			return err
		}
	}
	return errors.New("agentloop: the state changes too fast for a hook's update, or the update makes updates")
}

// commit appends an update of a state, which is so much work, unless the state has
// changed or the tree has less work left: no update of a call that ends at the same
// time is lost, and none is parked. What others append meanwhile may still use the
// work; then the fold parks the update.
func (h *HookContext) commit(state json.RawMessage, work int64, ops []eventlog.PatchOp) (done bool, err error) {
	h.t.committing.Lock()
	defer h.t.committing.Unlock()
	if now, left := h.t.patchable(); left < work || !bytes.Equal(state, now) {
		return false, nil
	}
	return true, h.append(&eventlog.StatePatch{Patches: ops, Base: h.base()})
}

// Emit appends a chunk of content to the stream and returns when it is
// durable: a custom event, a source, a file, text or reasoning. Its base is
// filled in. Text is no part of the model's answer.
func (h *HookContext) Emit(c eventlog.Chunk) error {
	switch c := c.(type) {
	case *eventlog.CustomEvent:
		x := *c
		x.Base = h.base()
		return h.append(&x)
	case *eventlog.SourceURL:
		x := *c
		x.Base = h.base()
		return h.append(&x)
	case *eventlog.SourceDocument:
		x := *c
		x.Base = h.base()
		return h.append(&x)
	case *eventlog.File:
		x := *c
		x.Base = h.base()
		return h.append(&x)
	case *eventlog.TextDelta:
		x := *c
		x.Base = h.base()
		return h.append(&x)
	case *eventlog.Thinking:
		x := *c
		x.Base = h.base()
		return h.append(&x)
	case nil:
		return errors.New("agentloop: a hook emits nil")
	}
	return fmt.Errorf("agentloop: a hook can't emit a %s", c.Type())
}

// EmitCustom appends a custom event; it returns when the event is durable.
func (h *HookContext) EmitCustom(name string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	return h.Emit(&eventlog.CustomEvent{EventName: name, Data: raw})
}

func (h *HookContext) base() eventlog.Base { return h.t.base(h.t.step()) }

// append appends a chunk. That it fails is logged: hooks tend to ignore it.
func (h *HookContext) append(c eventlog.Chunk) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errHookOver
	if !h.over {
		err = h.t.append(h.ctx, fact{c: c, run: h.label()})
	}
	if err != nil {
		h.t.l.opts.Logger.Warn("a hook's write failed", eventlog.LogSession, h.SessionID, eventlog.LogRun, h.RunID, "type", c.Type(), "error", err)
	}
	return err
}

// label is the run that the hook's chunks belong to. While an answer is not
// recorded they belong to none, as those of an outside producer: they are not
// struck with the answer if that comes to nothing.
func (h *HookContext) label() (run string) {
	h.t.look(func(s *projector.Session) {
		if s.Turn == nil || s.Turn.Step == nil || s.Turn.Step.Recorded || s.Turn.Step.Committed {
			run = h.RunID
		}
	})
	return run
}
