package drive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/backlog"
	"github.com/helixd/helixd/agentloop/engine/internal/metrics"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/agentloop/internal/patch"
	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/agentloop/internal/shorten"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// errToolTimeout is the cause with which a tool's context ends.
var errToolTimeout = errors.New("the tool timed out")

// timeoutError is a tool that has timed out, with what it returned then.
type timeoutError struct {
	after time.Duration
	cause error
}

func (e *timeoutError) Error() string   { return fmt.Sprintf("%v after %s", errToolTimeout, e.after) }
func (e *timeoutError) Unwrap() []error { return []error{errToolTimeout, e.cause} }

// runCall executes a call and records its result, or has it wait.
func (t *task) runCall(ctx context.Context, e decide.RunCall) error {
	c := t.newCall(e.StepID, e.Call)
	ctx = t.traces.Call(ctx, t.traced(), c.step, e.Call)
	switch route := decide.RouteOf(t.def, e.Call, func() bool { return t.mustApprove(ctx, c, e.Call.Arguments) }); route.Kind {
	case decide.RouteRefuse:
		return t.refuse(ctx, c, e.Call, route.Code, route.Problem)
	case decide.RouteRemote, decide.RouteHasStarted:
		if route.Kind == decide.RouteRemote {
			t.beforeExecution(ctx, backlog.BeforeSubAgent(route.Remote.Name, e.Call))
		}
		t.pass() // it may take its time before it returns
		return t.runRemote(ctx, c, e.Call, route.Remote)
	case decide.RouteSubAgent:
		return t.startChild(ctx, c, e.Call, route.Sub)
	case decide.RouteCompanion:
		return t.companion(ctx, c, e.Call)
	case decide.RouteFinish:
		t.beforeExecution(ctx, backlog.BeforeTool(c.ToolName, c.ID, e.Call.Arguments))
		if err := t.append(ctx, c.start(e.Call)); err != nil {
			return err
		}
		return t.commitCall(ctx, c, json.RawMessage(`{"acknowledged":true}`), "", "")
	case decide.RouteClient: // the fact first, as below: it shows readers of the stream that a client has to act
		return t.awaitPerson(ctx, c, c.suspended(fact.PendingClient, "", route.Tool.Timeout), c.start(e.Call))
	case decide.RouteApproval:
		id := c.RunID + "::" + c.ID
		return t.awaitPerson(ctx, c, c.suspended(fact.PendingApproval, id, 0), c.chunk(&eventlog.ToolApprovalRequest{
			ToolCallID: c.ID, ToolName: c.ToolName, ApprovalID: id, Input: e.Call.Arguments, IsAutomatic: optional(c.judged), Base: c.base(),
		}))
	default:
		return t.runTool(ctx, c, e.Call, route.Tool)
	}
}

// mustApprove reports whether a person must approve the call, and notes whether
// a gate has looked at the call to decide that.
func (t *task) mustApprove(ctx context.Context, c *toolCall, args json.RawMessage) (must bool) {
	must, c.judged = t.def.MustApprove(ctx, c.Call, args, t.logger())
	return must
}

// awaitPerson has the call wait for a client or a person.
func (t *task) awaitPerson(ctx context.Context, c *toolCall, facts ...record.Draft) error {
	err := t.append(ctx, facts...)
	if err == nil {
		c.log(slog.LevelInfo, logSuspended)
	}
	return err
}

// runTool executes a function.
func (t *task) runTool(ctx context.Context, c *toolCall, call projector.Call, tool *plan.Tool) error {
	t.beforeExecution(ctx, backlog.BeforeTool(c.ToolName, c.ID, call.Arguments))
	var facts []record.Draft
	if call.Answer != nil {
		facts = append(facts, c.approvalResponse(call))
	}
	if err := t.append(ctx, append(facts, c.start(call))...); err != nil {
		return err
	}
	began := time.Now()
	result, code, err := t.execute(ctx, tool, c, call)
	outcome := metrics.Outcome(code)
	if err != nil && context.Cause(ctx) != nil {
		outcome = "stopped"
	}
	t.host.Metrics.Executed(t.def, tool.Name, outcome, time.Since(began))
	if err == nil { // it is done, even if the run has been stopped meanwhile
		return t.commitCall(context.WithoutCancel(ctx), c, result, "", "")
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // the call was stopped: it is executed again
	}
	if lost := c.lostLog(); lost != nil {
		return fmt.Errorf("an event of tool %s is not in the log: %w", tool.Name, lost)
	}
	c.cause = upstream.Text(err)
	if code != agentloop.CodeToolOutput {
		c.log(slog.LevelWarn, logToolFailed, append([]any{"code", code}, upstream.Attrs(err)...)...)
	}
	return t.commitCall(ctx, c, nil, code, shorten.Error(err.Error()))
}

// execute runs the tool's function. A panic is the call's failure.
func (t *task) execute(ctx context.Context, tool *plan.Tool, c *toolCall, call projector.Call) (result json.RawMessage, code string, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.logger().Error("tool panicked", eventlog.LogTool, tool.Name, "panic", p,
				"stack", string(debug.Stack()))
			result, code, err = nil, agentloop.CodeToolFailed, errors.New("the tool failed unexpectedly")
		}
	}()
	if tool.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, tool.Timeout, errToolTimeout)
		defer cancel()
	}
	var v any
	if tool.Op != nil {
		v, err = t.files.Use(ctx, filesOf{task: t, c: c}, *tool.Op, call.Arguments)
	} else {
		v, err = tool.Execute(ctx, c.Call, call.Arguments)
	}
	if err != nil {
		if errors.Is(context.Cause(ctx), errToolTimeout) {
			return nil, agentloop.CodeToolTimeout, &timeoutError{tool.Timeout, err}
		}
		return nil, agentloop.CodeToolFailed, err
	}
	result, err = json.Marshal(v)
	if err != nil {
		return nil, agentloop.CodeToolFailed, fmt.Errorf("the result is not JSON: %w", err)
	}
	if limit := t.host.Log.Info().MaxRecordBytes - resultRoom; len(result) > limit {
		return nil, agentloop.CodeToolFailed, fmt.Errorf("the result has %d bytes, at most %d", len(result), limit)
	}
	if err := t.def.CheckOutput(tool.Name, result); err != nil {
		return nil, agentloop.CodeToolOutput, err
	}
	return result, "", nil
}

// resultRoom is what a result's record holds beside the result, in bytes.
const resultRoom = 4 << 10

// commitCall makes the call's state updates and its result final in one
// append. The updates are made on the state as it is now: calls of a step run
// in parallel, and each builds on those that were committed before it. What
// can't be recorded is the call's failure.
func (t *task) commitCall(ctx context.Context, c *toolCall, result json.RawMessage, code, message string) error {
	t.committing.Lock()
	defer t.committing.Unlock()
	c.mu.Lock()
	c.done = true
	updates := c.updates
	c.mu.Unlock()

	if message == "" {
		patches, err := t.safeReplay(updates)
		if err == nil {
			err = t.appendResult(ctx, c, patches, result, "", "")
			if err == nil || !unrecordable(err) {
				return err
			}
		}
		code, message = agentloop.CodeToolFailed, shorten.Error("the result can't be recorded: "+err.Error())
	}
	return t.appendResult(ctx, c, nil, nil, code, message)
}

func (t *task) appendResult(ctx context.Context, c *toolCall, patches [][]eventlog.PatchOp, result json.RawMessage, code, message string) error {
	var facts []record.Draft
	for _, ops := range patches {
		facts = append(facts, c.chunk(&eventlog.StatePatch{Patches: ops, Base: c.base()}))
	}
	return t.appendOn(ctx, append(facts, c.outcome(result, code, message)...)...)
}

// safeReplay is [patch.Replay] for updates whose tool has returned: a panic of theirs
// is the call's failure.
func (t *task) safeReplay(updates []patch.Update) (patches [][]eventlog.PatchOp, err error) {
	defer func() {
		if p := recover(); p != nil {
			patches, err = nil, errors.New("a state update panicked")
		}
	}()
	state, left := t.patchable()
	_, _, patches, err = patch.Replay(state, left, updates)
	return patches, err
}

// refuse records a call that can't be executed.
func (t *task) refuse(ctx context.Context, c *toolCall, call projector.Call, code, message string) error {
	message = shorten.Error(message)
	return t.append(ctx, c.result(nil, code, message), c.chunk(&eventlog.ToolInputError{
		ToolCallID: c.ID, ToolName: c.ToolName, Error: message, PartialInput: call.Arguments, Base: c.base(),
	}))
}
