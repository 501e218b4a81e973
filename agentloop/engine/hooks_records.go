package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// noteHooks queues what hooks are to be told of a record that was folded. So
// whatever way a thing came about, those who want to know hear of it. The
// caller holds the state.
func (r *runner) noteHooks(rec eventlog.Record) {
	if !ofInterest(rec) {
		return
	}
	s := r.tree.Get(rec.Agent)
	if s == nil || len(r.hooksOf(s)) == 0 {
		return
	}
	if rec.Kind == eventlog.KindChunk {
		if c, err := rec.Chunk(); err == nil {
			r.noteChunk(s, rec, c)
		}
	} else if f, err := rec.Fact(); err == nil {
		r.noteFact(s, rec, f)
	}
}

// ofInterest reports whether hooks may have to be told of a record. Most are
// pieces of an answer.
func ofInterest(rec eventlog.Record) bool {
	switch rec.Type {
	case (*eventlog.StatePatch)(nil).Type(), (*eventlog.ToolStart)(nil).Type():
		return rec.Kind == eventlog.KindChunk && rec.Call != ""
	case (*eventlog.UserMessage)(nil).Type(), (*eventlog.RunRequested)(nil).Type(), (*eventlog.ModelTurn)(nil).Type(),
		(*eventlog.ModelFailed)(nil).Type(), (*eventlog.ToolResult)(nil).Type(), (*eventlog.RunEnded)(nil).Type():
		return rec.Kind == eventlog.KindFact
	}
	return false
}

func (r *runner) noteChunk(s *projector.Session, rec eventlog.Record, c eventlog.Chunk) {
	switch c := c.(type) {
	case *eventlog.ToolStart:
		r.hooks.began[rec.Call] = c.Timestamp
	case *eventlog.StatePatch:
		r.due(s, newHookEvent("onStateChange", agentloop.StateChangePayload{Patches: c.Patches, State: s.CustomState.Bytes(), ToolCallID: rec.Call},
			func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.StateChangePayload) {
				return h.OnStateChange
			}))
	}
}

func (r *runner) noteFact(s *projector.Session, rec eventlog.Record, f eventlog.Fact) {
	switch f := f.(type) {
	case *eventlog.UserMessage:
		// Those of a run that is about to be requested are told with it.
		if slices.ContainsFunc(s.Runs, func(run projector.Run) bool { return run.RunID == rec.Run }) {
			r.due(s, messagesAt(s, rec.Sequence)...)
		}
	case *eventlog.RunRequested:
		if run := s.CurrentRun(); run != nil && run.RunID == f.RunID {
			r.runBegins(s)
		}
	case *eventlog.ModelTurn:
		r.due(s, append([]hookEvent{afterLLMCall(agentloop.AfterLLMCallPayload{
			StepID: f.StepID, Step: f.Step, Model: f.Model, Parts: f.Parts, StopReason: f.StopReason, Usage: f.Usage,
			DurationMs: r.since(decide.CallModel{Session: s.SessionID, RunID: f.RunID}.Key(), f.Timestamp, 0),
		})}, messagesAt(s, rec.Sequence)...)...)
	case *eventlog.ModelFailed:
		r.due(s, afterLLMCall(agentloop.AfterLLMCallPayload{
			StepID: f.StepID, Step: f.Step, Error: &projector.ModelFailure{Error: f.Error, Code: f.Code, Retryable: f.Retryable},
			DurationMs: r.since(decide.CallModel{Session: s.SessionID, RunID: f.RunID}.Key(), f.Timestamp, 0),
		}))
	case *eventlog.ToolResult:
		r.noteResult(s, rec, f)
	case *eventlog.RunEnded:
		r.releaseAll(s.SessionID)
		r.runEnds(s, f)
	}
}

// since returns how long ago something began; otherwise is when if that was
// not met here, 0 if nobody knows.
func (r *runner) since(key string, now, otherwise int64) int64 {
	began, ok := r.hooks.began[key]
	delete(r.hooks.began, key)
	if !ok {
		began = otherwise
	}
	if began == 0 {
		return 0
	}
	return max(now-began, 0)
}

// messagesAt returns the event of the message that a record has become.
func messagesAt(s *projector.Session, seq uint64) []hookEvent {
	for _, m := range slices.Backward(s.Messages) {
		if m.Sequence == seq {
			return []hookEvent{onMessage(m)}
		}
	}
	return nil
}

func onMessage(m projector.Message) hookEvent {
	return newHookEvent("onMessage", agentloop.MessagePayload{Message: m},
		func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.MessagePayload) {
			return h.OnMessage
		})
}

func afterLLMCall(p agentloop.AfterLLMCallPayload) hookEvent {
	return newHookEvent("afterLLMCall", p,
		func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AfterLLMCallPayload) {
			return h.AfterLLMCall
		})
}

// noteResult keeps what is told of a call's result until its turn has come.
func (r *runner) noteResult(s *projector.Session, rec eventlog.Record, f *eventlog.ToolResult) {
	if s.Turn == nil || s.Turn.Step == nil {
		return
	}
	i := slices.IndexFunc(s.Turn.Step.Calls, func(c projector.Call) bool { return c.ID == f.ToolCallID })
	message := messagesAt(s, rec.Sequence)
	if i < 0 || len(message) == 0 { // the fold could not use it
		return
	}
	call, waits, child := s.Turn.Step.Calls[i], int64(0), ""
	if call.Pending != nil {
		waits, child = call.Pending.CreatedAt, call.Pending.Child
	}
	took := r.since(call.ID, f.Timestamp, waits)
	events := append(message, afterCall(call, f, child, took))
	r.hooks.results[s.SessionID] = append(r.hooks.results[s.SessionID], hookResult{index: i, events: r.wanted(s, events)})
}

func afterCall(call projector.Call, f *eventlog.ToolResult, child string, took int64) hookEvent {
	if agent, ok := strings.CutPrefix(call.Name, agentloop.SubAgentPrefix); ok {
		return newHookEvent("afterSubAgent", agentloop.AfterSubAgentPayload{
			Agent: agent, SubSessionID: child, ToolCallID: call.ID, Input: call.Arguments,
			Result: f.Result, Error: f.Error, ErrorCode: f.ErrorCode, DurationMs: took,
		}, func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AfterSubAgentPayload) {
			return h.AfterSubAgent
		})
	}
	return newHookEvent("afterTool", agentloop.AfterToolPayload{
		Tool: agentloop.HookTool{Name: call.Name}, ToolCallID: call.ID, Arguments: call.Arguments,
		Result: f.Result, Error: f.Error, ErrorCode: f.ErrorCode, DurationMs: took,
	}, func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AfterToolPayload) {
		return h.AfterTool
	})
}

// runBegins tells of the session's last run and of the messages that came
// with it.
func (r *runner) runBegins(s *projector.Session) {
	run := s.CurrentRun()
	input := messagesOf(s, run)
	var begins hookEvent
	if run.Mode == eventlog.ModeStart {
		begins = newHookEvent("onAgentStart", agentloop.AgentStartPayload{Agent: s.AgentType, Input: input, InitialState: s.CustomState.Bytes()},
			func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AgentStartPayload) {
				return h.OnAgentStart
			})
	} else {
		begins = newHookEvent("onAgentResumed", agentloop.AgentResumedPayload{Reason: suspendedFor(s), Mode: run.Mode},
			func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AgentResumedPayload) {
				return h.OnAgentResumed
			})
	}
	events := []hookEvent{begins}
	for _, m := range input {
		events = append(events, onMessage(m))
	}
	r.due(s, events...)
}

// messagesOf are the messages that came with a run: they stand right before it.
func messagesOf(s *projector.Session, run *projector.Run) []projector.Message {
	var input []projector.Message
	seq := run.StartSequence
	for _, m := range slices.Backward(s.Messages) {
		if m.Role != projector.RoleUser || m.Sequence != seq || seq == 0 {
			break
		}
		input = append(input, m)
		seq--
	}
	slices.Reverse(input)
	return input
}

// suspendedFor tells why the run before the session's last one did not end its
// turn.
func suspendedFor(s *projector.Session) string {
	last := true
	for _, run := range slices.Backward(s.Runs) {
		switch {
		case run.Struck:
		case last:
			last = false
		default:
			return suspensionReason(run.Status)
		}
	}
	return ""
}

func suspensionReason(status eventlog.RunStatus) string {
	switch status {
	case eventlog.RunClientTool, eventlog.RunStepPartial:
		return agentloop.ReasonClientTool
	case eventlog.RunChildren:
		return agentloop.ReasonAwaitingChildren
	case eventlog.RunStopped:
		return agentloop.ReasonInterrupted
	}
	return ""
}

func (r *runner) runEnds(s *projector.Session, f *eventlog.RunEnded) {
	var took int64
	for _, run := range s.Runs {
		if run.RunID == f.RunID {
			took = max(f.Timestamp-run.StartedAt, 0)
		}
	}
	switch f.Status {
	case eventlog.RunCompleted:
		r.due(s, newHookEvent("onAgentComplete", agentloop.AgentCompletePayload{
			Output: f.Output, FinalState: s.CustomState.Bytes(), StepCount: s.StepCount, DurationMs: took,
		}, func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AgentCompletePayload) {
			return h.OnAgentComplete
		}))
	case eventlog.RunFailed:
		r.due(s, newHookEvent("onAgentFail", agentloop.AgentFailPayload{
			Error: f.Error, Code: f.ErrorCode, FinalState: s.CustomState.Bytes(), StepCount: s.StepCount, DurationMs: took,
		}, func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AgentFailPayload) {
			return h.OnAgentFail
		}))
	default:
		p := agentloop.AgentSuspendedPayload{Reason: suspensionReason(f.Status), Status: f.Status}
		if s.Turn != nil && s.Turn.Step != nil {
			for _, c := range s.Turn.Step.Pending() {
				switch {
				case c.Awaited():
					p.ToolCallIDs = append(p.ToolCallIDs, c.ID)
				case c.Pending != nil && c.Pending.Kind == eventlog.PendingChild:
					p.Children = append(p.Children, c.Pending.Child)
				}
			}
		}
		r.due(s, newHookEvent("onAgentSuspended", p,
			func(h *agentloop.Hooks) func(context.Context, *agentloop.HookContext, agentloop.AgentSuspendedPayload) {
				return h.OnAgentSuspended
			}))
	}
}
