package drive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// hookHost serves one call of a hook.
type hookHost struct {
	t   *task
	ctx context.Context

	mu   sync.Mutex
	over bool
}

// errHookOver: the hook has returned, or has taken too long.
var errHookOver = errors.New("agentloop: the hook is finished")

// newHookContext returns what a hook gets.
func newHookContext(t *task, host *hookHost) *agentloop.HookContext {
	h := agentloop.HookContext{SessionID: t.session, StreamID: t.root, RunID: t.runID}
	t.look(func(s *projector.Session) {
		h.AgentType, h.StepCount = s.AgentType, s.StepCount
		if s.Child != nil {
			h.ParentSessionID = s.Child.ParentSessionID
		}
		h.UserID, h.Tags, h.Metadata = t.tree.UserID, slices.Clone(t.tree.Tags), maps.Clone(t.tree.Metadata) // others read them
	})
	return agentloop.NewHookContext(h, host)
}

// end refuses what the hook does from now on.
func (h *hookHost) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}

// State implements HookHost.
func (h *hookHost) State() json.RawMessage { return h.t.customState() }

// Update implements HookHost. It makes an update on the state as it is now and appends it. The update
// itself runs outside of the lock: it is the hook's code.
func (h *hookHost) Update(u func(json.RawMessage) ([]eventlog.PatchOp, error)) error {
	for range maxUpdates {
		state, left := h.t.patchable()
		_, rest, patches, err := patch.Replay(state, left, []patch.Update{u})
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
func (h *hookHost) commit(state json.RawMessage, work int64, ops []eventlog.PatchOp) (done bool, err error) {
	h.t.committing.Lock()
	defer h.t.committing.Unlock()
	if now, left := h.t.patchable(); left < work || !bytes.Equal(state, now) {
		return false, nil
	}
	return true, h.append(&eventlog.StatePatch{Patches: ops, Base: h.base()})
}

// Emit implements HookHost.
func (h *hookHost) Emit(c eventlog.Chunk) error {
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

func (h *hookHost) base() eventlog.Base { return h.t.base(h.t.step()) }

// append appends a chunk. That it fails is logged: hooks tend to ignore it.
func (h *hookHost) append(c eventlog.Chunk) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := errHookOver
	if !h.over {
		err = h.t.append(h.ctx, record.Draft{Chunk: c, Run: h.label()})
	}
	if err != nil {
		h.t.host.Logger.Warn("a hook's write failed", eventlog.LogSession, h.t.session, eventlog.LogRun, h.t.runID, "type", c.Type(), "error", err)
	}
	return err
}

// label is the run that the hook's chunks belong to. While an answer is not
// recorded they belong to none, as those of an outside producer: they are not
// truncated with the answer if that comes to nothing.
func (h *hookHost) label() (run string) {
	h.t.look(func(s *projector.Session) {
		if s.Turn == nil || s.Turn.Step == nil || s.Turn.Step.Recorded || s.Turn.Step.Committed {
			run = h.t.runID
		}
	})
	return run
}
