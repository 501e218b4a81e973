package backlog

import (
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/runs"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Note queues the events of a record that was folded. So hooks are notified of an event
// regardless of how it came about.
func (q *Queue) Note(rec eventlog.Record) {
	if !ofInterest(rec) {
		return
	}
	s := q.tree.Get(rec.Agent)
	if s == nil || len(q.Of(s)) == 0 {
		return
	}
	if rec.Kind == eventlog.KindChunk {
		if c, err := rec.Chunk(); err == nil {
			q.noteChunk(s, rec, c)
		}
	} else if f, err := rec.Fact(); err == nil {
		q.noteFact(s, rec, f)
	}
}

// ofInterest reports whether hooks may have to be notified of a record. Most are
// pieces of an answer.
func ofInterest(rec eventlog.Record) bool {
	switch rec.Type {
	case (*eventlog.StatePatch)(nil).Type(), (*eventlog.ToolStart)(nil).Type():
		return rec.Kind == eventlog.KindChunk && rec.Call != ""
	case (*fact.UserMessage)(nil).Type(), (*fact.RunRequested)(nil).Type(), (*fact.ModelTurn)(nil).Type(),
		(*fact.ModelFailed)(nil).Type(), (*fact.ToolResult)(nil).Type(), (*fact.RunEnded)(nil).Type():
		return rec.Kind == eventlog.KindFact
	}
	return false
}

func (q *Queue) noteChunk(s *projector.Session, rec eventlog.Record, c eventlog.Chunk) {
	switch c := c.(type) {
	case *eventlog.ToolStart:
		q.began[rec.Call] = c.Timestamp
	case *eventlog.StatePatch:
		q.enqueue(s, newEvent("onStateChange", agentloop.StateChangePayload{Patches: c.Patches, State: s.CustomState.Bytes(), ToolCallID: rec.Call},
			func(h *agentloop.Hooks) hook[agentloop.StateChangePayload] { return h.OnStateChange }))
	}
}

func (q *Queue) noteFact(s *projector.Session, rec eventlog.Record, f fact.Fact) {
	switch f := f.(type) {
	case *fact.UserMessage:
		// Those of a run that is about to be requested are queued with it.
		if slices.ContainsFunc(s.Runs, func(run projector.Run) bool { return run.RunID == rec.Run }) {
			q.enqueue(s, messagesAt(s, rec.Sequence)...)
		}
	case *fact.RunRequested:
		if run := s.CurrentRun(); run != nil && run.RunID == f.RunID {
			q.RunBegins(s)
		}
	case *fact.ModelTurn:
		q.enqueue(s, append([]Event{afterLLMCall(agentloop.AfterLLMCallPayload{
			StepID: f.StepID, Step: f.Step, Model: f.Model, Parts: f.Parts, StopReason: f.StopReason, Usage: f.Usage,
			DurationMs: q.since(decide.CallModel{Session: s.SessionID, RunID: f.RunID}.Key(), f.Timestamp, 0),
		})}, messagesAt(s, rec.Sequence)...)...)
	case *fact.ModelFailed:
		q.enqueue(s, afterLLMCall(agentloop.AfterLLMCallPayload{
			StepID: f.StepID, Step: f.Step, Error: &projector.ModelFailure{Error: f.Error, Code: f.Code, Retryable: f.Retryable},
			DurationMs: q.since(decide.CallModel{Session: s.SessionID, RunID: f.RunID}.Key(), f.Timestamp, 0),
		}))
	case *fact.ToolResult:
		q.noteResult(s, rec, f)
	case *fact.RunEnded:
		q.releaseAll(s.SessionID)
		q.runEnds(s, f)
	}
}

// since returns how long ago something began. otherwise is the time of the beginning if this
// process did not see it, 0 if it is not known.
func (q *Queue) since(key string, now, otherwise int64) int64 {
	began, ok := q.began[key]
	delete(q.began, key)
	if !ok {
		began = otherwise
	}
	if began == 0 {
		return 0
	}
	return max(now-began, 0)
}

// messagesAt returns the event of the message that a record has become.
func messagesAt(s *projector.Session, seq uint64) []Event {
	for _, m := range slices.Backward(s.Messages) {
		if m.Sequence == seq {
			return []Event{onMessage(m)}
		}
	}
	return nil
}

func onMessage(m projector.Message) Event {
	return newEvent("onMessage", agentloop.MessagePayload{Message: m},
		func(h *agentloop.Hooks) hook[agentloop.MessagePayload] { return h.OnMessage })
}

func afterLLMCall(p agentloop.AfterLLMCallPayload) Event {
	return newEvent("afterLLMCall", p,
		func(h *agentloop.Hooks) hook[agentloop.AfterLLMCallPayload] { return h.AfterLLMCall })
}

// noteResult keeps the event of a call's result until its turn has come.
func (q *Queue) noteResult(s *projector.Session, rec eventlog.Record, f *fact.ToolResult) {
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
	took := q.since(call.ID, f.Timestamp, waits)
	events := append(message, afterCall(call, f, child, took))
	q.results[s.SessionID] = append(q.results[s.SessionID], result{index: i, events: q.wanted(s, events)})
}

func afterCall(call projector.Call, f *fact.ToolResult, child string, took int64) Event {
	if agent, ok := strings.CutPrefix(call.Name, agentloop.SubAgentPrefix); ok {
		return newEvent("afterSubAgent", agentloop.AfterSubAgentPayload{
			Agent: agent, SubSessionID: child, ToolCallID: call.ID, Input: call.Arguments,
			Result: f.Result, Error: f.Error, ErrorCode: f.ErrorCode, DurationMs: took,
		}, func(h *agentloop.Hooks) hook[agentloop.AfterSubAgentPayload] { return h.AfterSubAgent })
	}
	return newEvent("afterTool", agentloop.AfterToolPayload{
		Tool: agentloop.HookTool{Name: call.Name}, ToolCallID: call.ID, Arguments: call.Arguments,
		Result: f.Result, Error: f.Error, ErrorCode: f.ErrorCode, DurationMs: took,
	}, func(h *agentloop.Hooks) hook[agentloop.AfterToolPayload] { return h.AfterTool })
}

// RunBegins queues the events of the session's last run and of the messages that came
// with it.
func (q *Queue) RunBegins(s *projector.Session) {
	run := s.CurrentRun()
	input := runs.MessagesOf(s, run)
	var begins Event
	if run.Mode == fact.ModeStart {
		begins = newEvent("onAgentStart", agentloop.AgentStartPayload{Agent: s.AgentType, Input: input, InitialState: s.CustomState.Bytes()},
			func(h *agentloop.Hooks) hook[agentloop.AgentStartPayload] { return h.OnAgentStart })
	} else {
		begins = newEvent("onAgentResumed", agentloop.AgentResumedPayload{Reason: runs.SuspendedFor(s), Mode: run.Mode},
			func(h *agentloop.Hooks) hook[agentloop.AgentResumedPayload] { return h.OnAgentResumed })
	}
	events := []Event{begins}
	for _, m := range input {
		events = append(events, onMessage(m))
	}
	q.enqueue(s, events...)
}

func (q *Queue) runEnds(s *projector.Session, f *fact.RunEnded) {
	var took int64
	for _, run := range s.Runs {
		if run.RunID == f.RunID {
			took = max(f.Timestamp-run.StartedAt, 0)
		}
	}
	switch f.Status {
	case fact.RunCompleted:
		q.enqueue(s, newEvent("onAgentComplete", agentloop.AgentCompletePayload{
			Output: f.Output, FinalState: s.CustomState.Bytes(), StepCount: s.StepCount, DurationMs: took,
		}, func(h *agentloop.Hooks) hook[agentloop.AgentCompletePayload] { return h.OnAgentComplete }))
	case fact.RunFailed:
		q.enqueue(s, newEvent("onAgentFail", agentloop.AgentFailPayload{
			Error: f.Error, Code: f.ErrorCode, FinalState: s.CustomState.Bytes(), StepCount: s.StepCount, DurationMs: took,
		}, func(h *agentloop.Hooks) hook[agentloop.AgentFailPayload] { return h.OnAgentFail }))
	default:
		p := agentloop.AgentSuspendedPayload{Reason: runs.SuspensionReason(f.Status), Status: f.Status}
		for c := range s.OpenCalls() {
			switch {
			case c.Done:
			case c.Awaited():
				p.ToolCallIDs = append(p.ToolCallIDs, c.ID)
			case c.Pending != nil && c.Pending.Kind == fact.PendingChild:
				p.Children = append(p.Children, c.Pending.Child)
			}
		}
		q.enqueue(s, newEvent("onAgentSuspended", p,
			func(h *agentloop.Hooks) hook[agentloop.AgentSuspendedPayload] { return h.OnAgentSuspended }))
	}
}
