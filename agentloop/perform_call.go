package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// MaxErrorText is how much of a tool's error the model and the log get, in
// bytes.
const MaxErrorText = 8 << 10

// errToolTimeout is the cause with which a tool's context ends.
var errToolTimeout = errors.New("the tool timed out")

// runCall executes a call and records its result.
func (r *runner) runCall(ctx context.Context, e RunCall) error {
	c := r.newCall(e)
	if e.Call.Name == FinishTool && r.def.finish != nil {
		if err := checkArguments(r.def.finish, e.Call.Arguments); err != nil {
			return r.refuse(ctx, c, e, CodeToolInput, "invalid output: "+err.Error())
		}
		if err := r.startCall(ctx, c, e); err != nil {
			return err
		}
		return r.commitCall(ctx, c, json.RawMessage(`{"acknowledged":true}`), "", "")
	}
	t := r.def.tools[e.Call.Name]
	if t == nil {
		return r.refuse(ctx, c, e, CodeToolNotFound, fmt.Sprintf("there is no tool %q", e.Call.Name))
	}
	if err := checkArguments(t.input, e.Call.Arguments); err != nil {
		return r.refuse(ctx, c, e, CodeToolInput, "invalid arguments: "+err.Error())
	}
	if err := r.startCall(ctx, c, e); err != nil {
		return err
	}
	result, code, err := r.execute(ctx, t, c, e.Call)
	if err == nil { // it is done, even if the run has been stopped meanwhile
		return r.commitCall(context.WithoutCancel(ctx), c, result, "", "")
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // the call was stopped: it is executed again
	}
	return r.commitCall(ctx, c, nil, code, cut(err.Error()))
}

func (r *runner) newCall(e RunCall) *Call {
	return &Call{
		SessionID: r.session, AgentType: r.def.Name, RunID: e.Call.RunID, ToolName: e.Call.Name, ID: e.Call.ID,
		IdempotencyKey: r.session + ":" + e.Call.RunID + ":" + e.Call.ID,
		r:              r, step: r.step(), stepID: e.StepID,
	}
}

func (r *runner) startCall(ctx context.Context, c *Call, e RunCall) error {
	return r.append(ctx, c.chunk(&eventlog.ToolStart{
		ToolCallID: c.ID, ToolName: c.ToolName, Arguments: e.Call.Arguments, Base: c.base(),
	}))
}

// execute runs the tool's function. A panic is the call's failure.
func (r *runner) execute(ctx context.Context, t *tool, c *Call, call projector.Call) (result json.RawMessage, code string, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.l.opts.Logger.Error("tool panicked", "session", r.session, "tool", t.Name, "panic", p,
				"stack", string(debug.Stack()))
			result, code, err = nil, CodeToolFailed, errors.New("the tool failed unexpectedly")
		}
	}()
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.Timeout, errToolTimeout)
		defer cancel()
	}
	v, err := t.Execute(ctx, c, call.Arguments)
	if err != nil {
		if errors.Is(context.Cause(ctx), errToolTimeout) {
			return nil, CodeToolTimeout, fmt.Errorf("%w after %s", errToolTimeout, t.Timeout)
		}
		return nil, CodeToolFailed, err
	}
	result, err = json.Marshal(v)
	if err != nil {
		return nil, CodeToolFailed, fmt.Errorf("the result is not JSON: %w", err)
	}
	if limit := r.l.log.Info().MaxRecordBytes - resultRoom; len(result) > limit {
		return nil, CodeToolFailed, fmt.Errorf("the result has %d bytes, at most %d", len(result), limit)
	}
	return result, "", nil
}

// resultRoom is what a result's record holds beside the result, in bytes.
const resultRoom = 4 << 10

// commitCall makes the call's state updates and its result final in one
// append. The updates are made on the state as it is now: calls of a step run
// in parallel, and each builds on those that were committed before it. What
// can't be recorded is the call's failure.
func (r *runner) commitCall(ctx context.Context, c *Call, result json.RawMessage, code, message string) error {
	r.committing.Lock()
	defer r.committing.Unlock()
	c.mu.Lock()
	c.done = true
	updates := c.updates
	c.mu.Unlock()

	if message == "" {
		patches, err := safeReplay(r.customState(), updates)
		if err == nil {
			err = r.appendResult(ctx, c, patches, result, "", "")
			if err == nil || !unrecordable(err) {
				return err
			}
		}
		code, message = CodeToolFailed, cut("the result can't be recorded: "+err.Error())
	}
	return r.appendResult(ctx, c, nil, nil, code, message)
}

func (r *runner) appendResult(ctx context.Context, c *Call, patches [][]eventlog.PatchOp, result json.RawMessage, code, message string) error {
	var facts []fact
	for _, ops := range patches {
		facts = append(facts, c.chunk(&eventlog.StatePatch{Patches: ops, Base: c.base()}))
	}
	byUs := true
	end := &eventlog.ToolEnd{
		ToolCallID: c.ID, ToolName: c.ToolName, Result: result, ProviderExecuted: &byUs, Base: c.base(),
	}
	if message != "" {
		end.Error, end.ErrorCode = &message, &code
	}
	return r.append(ctx, append(facts, c.result(result, code, message), c.chunk(end))...)
}

// safeReplay is replay for updates whose tool has returned: a panic of theirs
// is the call's failure.
func safeReplay(state json.RawMessage, updates []update) (patches [][]eventlog.PatchOp, err error) {
	defer func() {
		if p := recover(); p != nil {
			patches, err = nil, errors.New("a state update panicked")
		}
	}()
	_, patches, err = replay(state, updates)
	return patches, err
}

// refuse records a call that can't be executed.
func (r *runner) refuse(ctx context.Context, c *Call, e RunCall, code, message string) error {
	message = cut(message)
	return r.append(ctx, c.result(nil, code, message), c.chunk(&eventlog.ToolInputError{
		ToolCallID: c.ID, ToolName: c.ToolName, Error: message, PartialInput: e.Call.Arguments, Base: c.base(),
	}))
}

func (c *Call) result(result json.RawMessage, code, message string) fact {
	return fact{run: c.RunID, call: c.ID, f: &eventlog.ToolResult{
		RunID: c.RunID, StepID: c.stepID, ToolCallID: c.ID, ToolName: c.ToolName,
		Result: result, Error: message, ErrorCode: code, FactBase: c.r.l.factBase(c.SessionID),
	}}
}

// cut shortens an error text to MaxErrorText. A failed call always has one.
func cut(s string) string {
	if s == "" {
		return "the tool failed"
	}
	if len(s) <= MaxErrorText {
		return s
	}
	return strings.ToValidUTF8(s[:MaxErrorText], "")
}
