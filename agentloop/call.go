package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Call is what an executing tool knows and may do. It is used by the tool's
// goroutines until Execute returns.
type Call struct {
	Whose
	RunID    string // the run whose model turn asked for the call
	ToolName string
	ID       string // the tool call's id
	// IdempotencyKey is the same however often the call is executed, after a
	// crash, a resume or a takeover.
	IdempotencyKey string

	r      *task
	step   int
	stepID string

	judged   bool  // a gate has decided that a person must approve the call
	answered bool  // a person has answered the call
	waited   int64 // how long that took, in milliseconds

	mu      sync.Mutex
	updates []update
	updated json.RawMessage // the state after updates
	left    int64           // work that more updates may be
	done    bool
	lost    error // the log has not taken what the tool said
}

// update changes the custom state. It may run again on a fresher state.
type update func(state json.RawMessage) ([]eventlog.PatchOp, error)

// Updater is what may change the custom state: a [*Call] or a [*HookContext].
type Updater interface{ update(u update) error }

// errCallDone: the tool has returned and must leave the call alone.
var errCallDone = errors.New("agentloop: the tool call is over")

// maxUpdates is how many state updates a call may make: with its result they
// are one append.
const maxUpdates = 500

// State returns the custom state as the call sees it: what was committed, with
// the call's own updates since its first one.
func (c *Call) State() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, _ := c.view()
	return state
}

// view returns the state for the call's next update, and how much work that may be.
func (c *Call) view() (state json.RawMessage, left int64) {
	if len(c.updates) == 0 {
		return c.r.patchable()
	}
	return c.updated, c.left
}

// GetState decodes the custom state into v.
func (c *Call) GetState(v any) error {
	return json.Unmarshal(c.State(), v)
}

// UpdateState changes the custom state through a T: f gets the state and
// changes it; members that T does not have stay as they are. Each update is
// one state_patch chunk. Updates become final, and visible to others, with
// the call's result; if the call fails they are dropped. f must be pure: it
// runs again when other calls have committed in between.
//
// A hook's update is final at once, and f runs again until nothing has come in
// between. It fails if the stream has ended.
func UpdateState[T any](c Updater, f func(*T) error) error {
	return c.update(func(state json.RawMessage) ([]eventlog.PatchOp, error) {
		var v T
		if err := json.Unmarshal(state, &v); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		before, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		if err := f(&v); err != nil {
			return nil, err
		}
		after, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
		return diff(state, before, after)
	})
}

// Patch changes the custom state by RFC 6902 operations, under the terms of
// UpdateState.
func (c *Call) Patch(ops []eventlog.PatchOp) error {
	return c.update(func(json.RawMessage) ([]eventlog.PatchOp, error) { return ops, nil })
}

// update tries an update and keeps it. Updates run outside of the lock: they
// are the tool's code, which may ask for the state.
func (c *Call) update(u update) error {
	for range maxUpdates {
		c.mu.Lock()
		n, done := len(c.updates), c.done
		view, left := c.view()
		c.mu.Unlock()
		switch {
		case done:
			return errCallDone
		case n >= maxUpdates:
			return fmt.Errorf("agentloop: a tool call makes at most %d state updates", maxUpdates)
		}
		next, left, _, err := replay(view, left, []update{u})
		if err != nil {
			return err
		}
		if c.keep(n, u, next, left) {
			return nil
		}
	}
	return errors.New("agentloop: a state update must not make state updates")
}

// keep adds an update unless another one was quicker.
func (c *Call) keep(n int, u update, updated json.RawMessage, left int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.updates) != n || c.done {
		return false
	}
	c.updates, c.updated, c.left = append(c.updates, u), updated, left
	return true
}

// replay applies updates to a state, which together may be as much work as is
// left. It returns the outcome, what is left then, and one patch an update.
func replay(state json.RawMessage, left int64, updates []update) (json.RawMessage, int64, [][]eventlog.PatchOp, error) {
	var patches [][]eventlog.PatchOp
	for _, u := range updates {
		ops, err := u(state)
		if err != nil {
			return nil, 0, nil, err
		}
		if len(ops) == 0 {
			continue
		}
		next, work, err := projector.Patch(state, ops, left)
		if err != nil {
			return nil, 0, nil, err
		}
		state, left, patches = next, left-work, append(patches, ops)
	}
	return state, left, patches, nil
}

// Emit appends a custom event; it returns when the event is durable.
func (c *Call) Emit(ctx context.Context, name string, data any) error {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	if done {
		return errCallDone
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	expired := ctx.Err() != nil
	err = c.r.append(ctx, c.chunk(&eventlog.CustomEvent{EventName: name, Data: raw, Base: c.base()}))
	if !expired {
		c.lose(err)
	}
	return err
}

// lose notes why the log did not take something, if it did not, and that is no
// fault of what it was.
func (c *Call) lose(err error) {
	if err == nil || unrecordable(err) || errors.Is(err, eventlog.ErrStreamEnded) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
}

// lostLog returns why the log did not take something that the tool said. The
// tool's failure is no result then: the call is made again.
func (c *Call) lostLog() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}
