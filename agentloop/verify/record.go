package verify

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// compare asks for the decision behind a record, if there is one. It
// reports whether that was an append: the next decision comes after it.
func (v *verifier) compare(r eventlog.Record) (appended bool) {
	s := v.tree.Get(r.Agent)
	if s == nil || s.Turn == nil || s != &v.tree.Session && (s.Child == nil || s.Child.Remote) || v.defs == nil {
		return false
	}
	if r.Kind == eventlog.KindChunk {
		if r.Run == "" {
			return false // an outside producer's
		}
		c, err := r.Chunk()
		return err == nil && v.chunk(r, s, c)
	}
	f, err := r.Fact()
	return err == nil && v.fact(r, s, f)
}

func (v *verifier) chunk(r eventlog.Record, s *projector.Session, c eventlog.Chunk) (appended bool) {
	switch c := c.(type) {
	case *eventlog.StepStart:
		if r.Call == "" && c.StepID != nil {
			v.modelCall(r, s, *c.StepID, c.Step)
		}
	case *eventlog.ToolStart:
		if call := openCall(s, r.Call); call != nil && (call.Pending == nil || call.Pending.Kind != fact.PendingClient) {
			v.call(r, s, call, routeOfName(c.ToolName), "")
			if strings.HasPrefix(c.ToolName, agentloop.CompanionPrefix) {
				v.companion = r.Call
				return true
			}
		}
	case *eventlog.StepEnd:
		if r.Call != "" || c.StepID == nil {
			return false
		}
		same := wanted(v, s, func(e decide.CommitStep) bool { return e.Step.ID == *c.StepID })
		v.judge(r, s, "", same, commits(c.Step), "")
		return true
	case *eventlog.RunInterrupted:
		if v.companion != "" || !v.ours(r) {
			return false
		}
		reason := ""
		if c.Reason != nil {
			reason = *c.Reason
		}
		same := wanted(v, s, func(e decide.Interrupt) bool { return e.Reason == reason })
		v.judge(r, s, "", same, interrupts, "")
		return true
	}
	return false
}

func (v *verifier) fact(r eventlog.Record, s *projector.Session, f fact.Fact) (appended bool) {
	switch f := f.(type) {
	case *fact.ModelFailed:
		v.modelEnded(r, s, f.StepID, f.Step)
	case *fact.ModelTurn:
		v.modelEnded(r, s, f.StepID, f.Step)
	case *fact.MemoryRecalled:
		v.recalled(r, s, f)
	case *fact.CallSuspended:
		return v.suspended(r, s, f)
	case *fact.ToolResult:
		return v.result(r, s, f)
	case *fact.UserMessage:
		if !decide.OwnMessage(f.Metadata) {
			return false
		}
		same := wanted(v, s, func(e decide.Tell) bool { return e.Text == f.Content })
		v.judge(r, s, "", same, tells(f.Content), "")
		return true
	case *fact.RunRequested:
		if s == &v.tree.Session || f.Mode != fact.ModeContinue {
			return false
		}
		v.judge(r, s, "", wanted(v, s, func(decide.ResumeChild) bool { return true }), resumes, "")
		return true
	case *fact.InterruptRequested:
		if !v.ours(r) || v.companion != "" || f.Code == agentloop.CodePoisoned {
			return false
		}
		same := wanted(v, s, func(e decide.StopChild) bool { return e.Stop.Kind == f.Kind && e.Stop.ByParent == f.ByParent })
		v.judge(r, s, "", same || f.Code == agentloop.CodeToolTimeout && v.expected(s), stops, "")
		return true
	case *eventlog.Truncated:
		if !v.ours(r) || f.AfterSequence > 0 || f.TruncatedAtStep != nil {
			return false
		}
		same := wanted(v, s, func(e decide.Truncate) bool { return e.Reason == f.Reason })
		v.judge(r, s, "", same, truncates(f.Reason), "")
		return true
	case *fact.RunEnded:
		return v.ended(r, s, f)
	}
	return false
}

// ended compares how a run ends. A failure of the log itself is no
// decision, and a stop of a run was recorded before.
func (v *verifier) ended(r eventlog.Record, s *projector.Session, f *fact.RunEnded) bool {
	if f.RunID != s.Turn.RunID || v.companion != "" || f.ErrorCode == agentloop.CodeInternal {
		return false
	}
	same, recorded := false, phrase{}
	switch f.Status {
	case fact.RunCompleted:
		structured := v.last.Agent == r.Agent && v.last.Type == (*eventlog.Output)(nil).Type()
		recorded = completes(f.Output, structured)
		same = wanted(v, s, func(e decide.Finish) bool {
			return e.Structured == structured && bytes.Equal(plain(e.Output), plain(f.Output))
		})
	case fact.RunFailed:
		recorded = fails(f.ErrorCode, "")
		same = wanted(v, s, func(e decide.Fail) bool { return e.Code == f.ErrorCode })
	case fact.RunClientTool, fact.RunChildren, fact.RunStepPartial:
		recorded = suspends(f.Status)
		same = wanted(v, s, func(e decide.Suspend) bool { return e.Status == f.Status })
	default:
		return false
	}
	v.judge(r, s, "", same, recorded, "")
	return true
}

// modelCall compares that a model was asked.
func (v *verifier) modelCall(r eventlog.Record, s *projector.Session, stepID string, step int) {
	v.decide()
	call, ok := v.async[decide.CallModel{Session: s.SessionID}.Key()].(decide.CallModel)
	same := ok && call.StepID == stepID && call.RunID == s.Turn.RunID
	v.judge(r, s, "", same, asks(step), "")
}

// modelEnded compares that a model was asked of which this is the first record.
func (v *verifier) modelEnded(r eventlog.Record, s *projector.Session, stepID string, step int) {
	if st := s.Turn.Step; st == nil || st.ID != stepID || st.Streamed == nil {
		v.modelCall(r, s, stepID, step)
	}
	delete(v.async, decide.CallModel{Session: s.SessionID}.Key())
}

// recalled compares that an agent was reminded. It does not compare the memories: today they
// may be others.
func (v *verifier) recalled(r eventlog.Record, s *projector.Session, f *fact.MemoryRecalled) {
	v.decide()
	key := decide.Recall{Session: s.SessionID}.Key()
	recall, ok := v.async[key].(decide.Recall)
	v.judge(r, s, "", ok && recall.RunID == f.RunID, recalls, "")
	delete(v.async, key)
}

// suspended compares that a call waits for a person. A call that waits for a
// sub-agent began before.
func (v *verifier) suspended(r eventlog.Record, s *projector.Session, f *fact.CallSuspended) bool {
	if f.ToolCallID == v.companion {
		v.companion = ""
		return false
	}
	call := openCall(s, f.ToolCallID)
	switch {
	case call == nil:
	case f.Kind == fact.PendingClient:
		v.call(r, s, call, decide.RouteClient, "")
	case f.Kind == fact.PendingApproval:
		v.call(r, s, call, decide.RouteApproval, "")
	}
	return false
}

// result compares the decision behind a call's result: a refusal of the call, or the
// handling of an answer. The output of an executed tool is recorded.
func (v *verifier) result(r eventlog.Record, s *projector.Session, f *fact.ToolResult) (appended bool) {
	call := openCall(s, f.ToolCallID)
	if f.ToolCallID == v.companion {
		v.companion = ""
		return false
	}
	if call == nil || f.ErrorCode == agentloop.CodeInternal {
		return false
	}
	if wanted(v, s, func(e decide.Fail) bool { return e.Code == f.ErrorCode }) { // which closes what is open
		return false
	}
	key := decide.CallKey(s.SessionID, call.ID)
	closes := wanted(v, s, func(e decide.CloseCall) bool { return e.Call.ID == call.ID })
	running, _ := v.async[key].(decide.RunCall)
	deadline := v.async[decide.AwaitDeadline{Session: s.SessionID, Call: *call}.Key()]
	defer func() {
		for _, k := range []string{key, decide.StopKey(s.SessionID, call.ID), decide.AwaitDeadline{Session: s.SessionID, Call: *call}.Key()} {
			delete(v.async, k)
		}
	}()
	switch p := call.Pending; {
	case !call.Started && (f.ErrorCode == agentloop.CodeToolNotFound || f.ErrorCode == agentloop.CodeToolInput):
		v.call(r, s, call, decide.RouteRefuse, f.ErrorCode)
		return false
	case p == nil, p.Kind == fact.PendingApproval && call.Started && call.Answer != nil && call.Answer.Approved:
		return false
	case p.Kind == fact.PendingChild:
		v.judge(r, s, call.ID, closes || deadline != nil || running.Call.ID != "", closesChild(call.Name), "")
		return closes
	}
	code := ""
	if def := v.defs[s.AgentType]; def != nil && closes {
		answer := call.Answer
		if answer == nil {
			answer = &projector.Answer{Kind: fact.SubmitTimeout}
		}
		_, code, _ = decide.JudgeAnswer(def, call.Name, answer)
	}
	today := ""
	if closes {
		today = closesCall(call.Name, code).would()
	}
	v.judge(r, s, call.ID, closes && code == f.ErrorCode, closesCall(call.Name, f.ErrorCode), today)
	return true
}

// call compares the route of a call.
func (v *verifier) call(r eventlog.Record, s *projector.Session, call *projector.Call, went decide.RouteKind, code string) {
	v.decide()
	due, ok := v.async[decide.CallKey(s.SessionID, call.ID)].(decide.RunCall)
	if !ok {
		ok = wanted(v, s, func(e decide.RunCompanion) bool {
			due = decide.RunCall(e)
			return e.Call.ID == call.ID
		})
	}
	recorded := goes(call.Name, went, code)
	if !ok || v.defs[s.AgentType] == nil {
		v.judge(r, s, call.ID, false, recorded, "")
		return
	}
	today := v.route(s, due.Call)
	same := today.Kind == went && today.Code == code ||
		went == decide.RouteSubAgent && (today.Kind == decide.RouteRemote || today.Kind == decide.RouteHasStarted)
	v.judge(r, s, call.ID, same, recorded, goes(call.Name, today.Kind, today.Code).would())
}

// expected reports whether a call's deadline may have stopped a sub-agent.
func (v *verifier) expected(child *projector.Session) bool {
	for _, e := range v.async {
		if d, ok := e.(decide.AwaitDeadline); ok && d.Call.Pending != nil && d.Call.Pending.Child == child.SessionID {
			return true
		}
	}
	return false
}

func openCall(s *projector.Session, id string) *projector.Call {
	if s.Turn.Step == nil || id == "" {
		return nil
	}
	for i := range s.Turn.Step.Calls {
		if c := &s.Turn.Step.Calls[i]; c.ID == id && !c.Done {
			return c
		}
	}
	return nil
}

// routeOfName is the route of a call that has begun: names that the loop's own tools
// have are reserved.
func routeOfName(tool string) decide.RouteKind {
	switch {
	case tool == agentloop.FinishTool:
		return decide.RouteFinish
	case strings.HasPrefix(tool, agentloop.SubAgentPrefix):
		return decide.RouteSubAgent
	case strings.HasPrefix(tool, agentloop.CompanionPrefix):
		return decide.RouteCompanion
	}
	return decide.RouteExecute
}

func plain(raw json.RawMessage) []byte {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}
