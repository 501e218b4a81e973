package agentloop

import (
	"context"
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Hooks are functions that are notified of what a run does. Each may be nil.
//
// For each event, the hooks of the session's parent agents are called first, beginning with
// the root's, then those of its own agent ([Agent.Hooks]), then those
// of the request that began the root's run (Hooks of
// StartRequest and ResumeRequest), which see the whole tree.
//
// The order of a tool call is BeforeTool, execution, OnStateChange for each
// update, OnMessage with the result, AfterTool. Calls of a step run beside each
// other: BeforeTool comes in the model's order, OnStateChange as they finish,
// and OnMessage and AfterTool in the model's order when all of them are finished or
// wait. A call that executes nothing here (refused, denied, timed out, answered
// by a client, closed by the run's end) has OnMessage and AfterTool only. An
// approved one has the whole order when it is executed. Sub-agents' tools have
// BeforeSubAgent and AfterSubAgent in place of BeforeTool and AfterTool.
//
// Hooks of one session are called one at a time; those of different sessions
// of a tree may be called at once. The run waits for its hooks, but for each at
// most MaxHookTime, and they can't make it fail: a panic is logged. ctx ends
// with that time and when the run is aborted, taken over, or the loop stops; a
// hook that ignores it is left alone, and what it writes is refused. A hook
// must not call Loop.Stop of package engine, which waits for it.
//
// An event is durable before a hook is notified of it, except with the Before
// hooks. It is not promised that every hook is called: after a crash or a takeover no
// hook is notified of earlier records, and only the process that received a request knows
// its hooks. A call that is executed again is notified again.
type Hooks struct {
	// OnAgentStart: a turn begins.
	OnAgentStart func(ctx context.Context, h *HookContext, p AgentStartPayload)
	// OnAgentComplete and OnAgentFail: a turn has ended. The root's stream
	// has ended too and takes no more chunks.
	OnAgentComplete func(ctx context.Context, h *HookContext, p AgentCompletePayload)
	OnAgentFail     func(ctx context.Context, h *HookContext, p AgentFailPayload)
	// OnAgentSuspended: a run has ended and the turn has not. OnAgentResumed:
	// a further run continues with it.
	OnAgentSuspended func(ctx context.Context, h *HookContext, p AgentSuspendedPayload)
	OnAgentResumed   func(ctx context.Context, h *HookContext, p AgentResumedPayload)

	// BeforeLLMCall and AfterLLMCall: each attempt of a model call that gives
	// an answer or fails. One that is cut off has no AfterLLMCall.
	BeforeLLMCall func(ctx context.Context, h *HookContext, p BeforeLLMCallPayload)
	AfterLLMCall  func(ctx context.Context, h *HookContext, p AfterLLMCallPayload)

	BeforeTool     func(ctx context.Context, h *HookContext, p BeforeToolPayload)
	AfterTool      func(ctx context.Context, h *HookContext, p AfterToolPayload)
	BeforeSubAgent func(ctx context.Context, h *HookContext, p BeforeSubAgentPayload)
	AfterSubAgent  func(ctx context.Context, h *HookContext, p AfterSubAgentPayload)

	// OnStateChange: a tool call's update of the custom state is final.
	// Updates by hooks call no hook.
	OnStateChange func(ctx context.Context, h *HookContext, p StateChangePayload)
	// OnMessage: the conversation has a further message, of a user, the
	// assistant or a tool, hidden ones too.
	OnMessage func(ctx context.Context, h *HookContext, p MessagePayload)
}

// MaxHookTime is how long a run waits for one call of a hook.
const MaxHookTime = 30 * time.Second

// ReasonInterrupted is the reason of OnAgentSuspended and OnAgentResumed if the run was
// stopped or, for OnAgentResumed, its process has died. Pauses have the reasons
// ReasonClientTool and ReasonAwaitingChildren.
const ReasonInterrupted = "interrupted"

// Reasons of pauses.
const (
	ReasonClientTool       = "client_tool"
	ReasonAwaitingChildren = "awaiting_children"
)

// Arguments of hooks. They are shared and must not be changed.
type (
	// AgentStartPayload is what OnAgentStart gets.
	AgentStartPayload struct {
		Agent        string
		Input        []projector.Message // the turn's first messages
		InitialState json.RawMessage     // the custom state at that time
	}
	// AgentCompletePayload is what OnAgentComplete gets.
	AgentCompletePayload struct {
		Output     json.RawMessage
		FinalState json.RawMessage
		StepCount  int
		DurationMs int64 // of the run
	}
	// AgentFailPayload is what OnAgentFail gets.
	AgentFailPayload struct {
		Error      string
		Code       string
		FinalState json.RawMessage
		StepCount  int
		DurationMs int64 // of the run
	}
	// AgentSuspendedPayload is what OnAgentSuspended gets.
	AgentSuspendedPayload struct {
		Reason      string // ReasonClientTool, ReasonAwaitingChildren or ReasonInterrupted
		Status      fact.RunStatus
		ToolCallIDs []string // calls that wait for a person
		Children    []string // sessions that are waited for
	}
	// AgentResumedPayload is what OnAgentResumed gets.
	AgentResumedPayload struct {
		Reason string // why it was suspended; empty after a completed turn
		Mode   fact.RunMode
	}
	// BeforeLLMCallPayload is what BeforeLLMCall gets.
	BeforeLLMCallPayload struct {
		StepID  string
		Step    int
		Attempt int // from 1
		Request model.Request
	}
	// AfterLLMCallPayload is what AfterLLMCall gets: the answer, or Error.
	AfterLLMCallPayload struct {
		StepID     string
		Step       int
		Model      string
		Parts      []fact.TurnPart
		StopReason fact.StopReason
		Usage      fact.TokenUsage
		Error      *projector.ModelFailure
		DurationMs int64
	}
	// HookTool names a tool.
	HookTool struct{ Name string }
	// BeforeToolPayload is what BeforeTool gets.
	BeforeToolPayload struct {
		Tool       HookTool
		ToolCallID string
		Arguments  json.RawMessage
	}
	// AfterToolPayload is what AfterTool gets: Result, or Error and ErrorCode.
	AfterToolPayload struct {
		Tool       HookTool
		ToolCallID string
		Arguments  json.RawMessage
		Result     json.RawMessage
		Error      string
		ErrorCode  string
		DurationMs int64 // since the call began, or began to wait
	}
	// BeforeSubAgentPayload is what BeforeSubAgent gets.
	BeforeSubAgentPayload struct {
		Agent      string // as the tool is named after SubAgentPrefix
		ToolCallID string
		Input      json.RawMessage
	}
	// AfterSubAgentPayload is what AfterSubAgent gets: Result, or Error and
	// ErrorCode.
	AfterSubAgentPayload struct {
		Agent        string
		SubSessionID string // empty if none was begun
		ToolCallID   string
		Input        json.RawMessage
		Result       json.RawMessage
		Error        string
		ErrorCode    string
		DurationMs   int64
	}
	// StateChangePayload is what OnStateChange gets.
	StateChangePayload struct {
		Patches    []eventlog.PatchOp
		State      json.RawMessage // after the update
		ToolCallID string
	}
	// MessagePayload is what OnMessage gets.
	MessagePayload struct{ Message projector.Message }
)
