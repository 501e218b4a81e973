package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// toolCall is a call while its tool is executed, and the host of what the tool
// gets.
type toolCall struct {
	*agentloop.Call
	r      *task
	step   int
	stepID string

	client   bool  // it waits, or has waited, for a client to execute it
	judged   bool  // a gate has decided that a person must approve the call
	answered bool  // a person has answered the call
	waited   int64 // how long that took, in milliseconds

	cause string // what a server has done that the call needed, for operators; see [fact.ToolResult]

	mu      sync.Mutex
	updates []patch.Update
	updated json.RawMessage // the state after updates
	left    int64           // work that more updates may be
	done    bool
	lost    error // the log has refused a record of the tool
}

// errCallDone: the tool has returned and must leave the call alone.
var errCallDone = errors.New("agentloop: the tool call is finished")

// maxUpdates is how many state updates a call may make: with its result they
// are one append.
const maxUpdates = 500

// State implements CallHost.
func (c *toolCall) State() json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, _ := c.view()
	return state
}

// view returns the state for the call's next update, and how much work that may be.
func (c *toolCall) view() (state json.RawMessage, left int64) {
	if len(c.updates) == 0 {
		return c.r.patchable()
	}
	return c.updated, c.left
}

// Update implements CallHost. It tries an update and keeps it. Updates run outside of the lock: they
// are the tool's code, which may ask for the state.
func (c *toolCall) Update(u func(json.RawMessage) ([]eventlog.PatchOp, error)) error {
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
		next, left, _, err := patch.Replay(view, left, []patch.Update{u})
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
func (c *toolCall) keep(n int, u patch.Update, updated json.RawMessage, left int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.updates) != n || c.done {
		return false
	}
	c.updates, c.updated, c.left = append(c.updates, u), updated, left
	return true
}

// Emit implements CallHost.
func (c *toolCall) Emit(ctx context.Context, name string, data json.RawMessage) error {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	if done {
		return errCallDone
	}
	expired := ctx.Err() != nil
	err := c.r.append(ctx, c.chunk(&eventlog.CustomEvent{EventName: name, Data: data, Base: c.base()}))
	if !expired {
		c.lose(err)
	}
	return err
}

// RecordUsage implements CallHost.
func (c *toolCall) RecordUsage(ctx context.Context, name string, amount float64) error {
	c.mu.Lock()
	done := c.done
	c.mu.Unlock()
	switch {
	case done:
		return errCallDone
	case name == fact.ClientToolWait:
		return fmt.Errorf("usage %s: the name is reserved", name)
	case math.IsNaN(amount) || math.IsInf(amount, 0):
		return errors.New("usage: the amount is no number")
	}
	return c.r.append(ctx, c.fact(&fact.UsageRecorded{
		RunID: c.RunID, StepCount: c.step, Source: fact.UsageTool, SourceType: name, SourceName: c.ToolName,
		Amount: amount, Base: c.r.factBase(),
	}))
}

// lose notes why the log did not take something, if it did not, and that is no
// fault of what it was.
func (c *toolCall) lose(err error) {
	if err == nil || unrecordable(err) || errors.Is(err, eventlog.ErrStreamEnded) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost = err
}

// lostLog returns why the log refused a record of the tool. The
// tool's failure is then no result: the call is made again.
func (c *toolCall) lostLog() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}
