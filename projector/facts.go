package projector

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/durable"
	"github.com/helixd/helixd/projector/jsondoc"
)

// applyFact folds a fact. If the fact can't be used, it returns the reason.
func (t *Tree) applyFact(s *Session, r eventlog.Record, f fact.Fact, before uint64) string {
	t.progress(f)
	switch f := f.(type) {
	case *fact.SessionCreated:
		s.AgentType, s.UserID, s.Tags, s.Metadata, s.Child = f.AgentType, f.UserID, f.Tags, f.Metadata, f.Child
		s.Tenant = f.Tenant
		if f.State != nil {
			s.CustomState = jsondoc.New(f.State)
		}
	case *fact.UserMessage:
		s.userMessage(r, f)
		t.notice(f)
	case *fact.MessageAdded:
		s.addMessage(r, f)
	case *fact.MetadataReplaced:
		s.Metadata = f.Metadata
	case *fact.RunDeleted:
		if run := s.RunOf(f.RunID); run != nil {
			run.Deleted = true
		}
	case *fact.RunRequested:
		t.AskedAt = f.Timestamp
		return s.requestRun(f, before)
	case *fact.RunClaimed:
		t.AskedAt = f.Timestamp
		t.claimed(r, f)
		if run := s.RunOf(f.RunID); run != nil {
			run.Claims++
		}
	case *fact.ClaimSettled:
		t.settled(r, f)
	case *fact.ModelTurn:
		return s.modelTurn(r, f)
	case *fact.ModelFailed:
		return s.modelFailed(f)
	case *fact.ToolResult:
		return t.toolResult(s, r, f)
	case *fact.CallSuspended:
		t.asks(r, f)
		return s.suspendCall(r, f)
	case *fact.ResultSubmitted:
		t.AskedAt = f.Timestamp
		s.submit(f)
	case *fact.InterruptRequested:
		t.requestStop(s, r, f)
	case *fact.UsageRecorded:
		s.use(f.RunID, func(u *Totals) { u.recorded(f) })
	case *fact.RemoteProgress:
		s.RemoteSequence = max(s.RemoteSequence, f.Sequence)
		s.noteRemoteCalls(f.Calls)
	case *fact.SessionForked:
		return t.forked(r, f, before)
	case *fact.RunEnded:
		s.endRun(r, f)
	case *eventlog.Truncated:
		return t.truncate(r, f)
	case *fact.StreamEnd:
		s.endStream(f)
	case *fact.StreamFailed:
		s.failStream(f)
	case *fact.MemoryRecalled:
		return s.recalled(r, f)
	case *fact.WorkspaceOpened:
		s.workspaceOpened(f)
	case *fact.WorkspaceFailed:
		s.workspaceFailed(f)
	case *fact.WorkspaceSaved:
		return s.changeWorkspace(func(w *Workspace) { w.Snapshot, w.Dirty, w.Stale = f.Snapshot, false, false })
	case *fact.WorkspaceRestored:
		return s.changeWorkspace(func(w *Workspace) { w.Stale, w.Dirty, w.Status, w.Error = false, false, WorkspaceOpen, "" })
	case *fact.WorkspaceClosed:
		return s.changeWorkspace(func(w *Workspace) {
			*w = Workspace{Name: w.Name, ProviderID: w.ProviderID, Capabilities: w.Capabilities, Status: WorkspaceGone, Error: f.Reason}
		})
	case *fact.DurableCreated, *fact.DurableAppended, *fact.DurableChanged:
		return t.foldDurable(s, r, f)
	}
	return ""
}

// foldDurable folds a fact of a durable stream.
func (t *Tree) foldDurable(s *Session, r eventlog.Record, f fact.Fact) (problem string) {
	if t.Durable, problem = durable.Apply(t.Durable, r, f); t.Durable != nil {
		s.ExpiresAt = t.Durable.Expires()
	}
	return problem
}

// endStream records the end of the stream. If no run has ended before, an outside
// producer has ended it, and everything that is open ends.
func (s *Session) endStream(f *fact.StreamEnd) {
	if len(f.FinalOutput) > 0 {
		s.Output = f.FinalOutput
	}
	s.endedFromOutside(SessionCompleted, fact.RunCompleted, f.Timestamp)
}

// failStream is endStream for a failure.
func (s *Session) failStream(f *fact.StreamFailed) {
	if s.Error == nil {
		s.Error = &Failure{Message: f.Error}
	}
	s.endedFromOutside(SessionFailed, fact.RunFailed, f.Timestamp)
}

func (s *Session) endedFromOutside(status SessionStatus, run fact.RunStatus, at int64) {
	if s.Status == SessionCompleted || s.Status == SessionFailed {
		return
	}
	s.Status, s.Turn = status, nil
	if r := s.CurrentRun(); r != nil && r.Status == fact.RunRunning {
		r.Status, r.CompletedAt = run, at
	}
}

func (s *Session) userMessage(r eventlog.Record, f *fact.UserMessage) {
	m := Message{
		Role: RoleUser, Turn: s.TurnCount + 1, Timestamp: f.Timestamp, Sequence: r.Sequence,
		Content: f.Content, Files: f.Files, Metadata: f.Metadata, MessageID: f.MessageID,
	}
	if s.Turn != nil {
		m.Turn = s.Turn.Number
		if _, helix := m.marks(); helix == "reminder" {
			s.Turn.Reminders++
		}
		if !m.Hidden() {
			s.Turn.Before = nil // another message answers it
		}
	}
	s.Messages = append(s.Messages, m)
}

// addMessage adds a message that a client has brought along.
func (s *Session) addMessage(r eventlog.Record, f *fact.MessageAdded) {
	m := Message{Role: RoleSystem, Turn: s.TurnCount + 1, Timestamp: f.Timestamp, Sequence: r.Sequence, MessageID: f.MessageID}
	if s.Turn != nil {
		m.Turn = s.Turn.Number
	}
	switch f.Role {
	case fact.AddedSystem:
		m.Content = f.Content
	case fact.AddedAssistant:
		m.Role, m.Parts = RoleAssistant, f.Parts
		for _, p := range f.Parts {
			m.Content += p.Text
		}
	case fact.AddedTool:
		m.Role, m.ToolCallID, m.ToolName, m.Result, m.Error = RoleTool, f.ToolCallID, f.ToolName, f.Result, f.Error
	}
	s.Messages = append(s.Messages, m)
}

func (s *Session) requestRun(f *fact.RunRequested, before uint64) string {
	if s.RunOf(f.RunID) != nil {
		return fmt.Sprintf("run %s was requested before", f.RunID)
	}
	if run := s.CurrentRun(); run != nil && run.Status == fact.RunRunning {
		run.Status, run.CompletedAt = fact.RunStopped, f.Timestamp // its node died without recording an end
	}
	if f.Mode == fact.ModeStart || s.Turn == nil {
		s.TurnCount++
		s.Turn = &Turn{Number: s.TurnCount}
		s.StepCount, s.Output, s.Error = 0, nil, nil
	}
	if f.Mode != fact.ModeStart {
		s.ResumeCount++
	}
	s.Turn.RunID, s.Turn.Stop = f.RunID, nil
	s.Turn.Instructions, s.Turn.Tools = f.Instructions, f.Tools
	s.Ephemeral = f.Ephemeral
	s.AgentType = cmp.Or(s.AgentType, f.AgentType)
	s.Status = SessionActive
	s.ExpiresAt = max(s.ExpiresAt, f.ExpiresAt)
	run := Run{
		RunID: f.RunID, Name: f.Name, Turn: s.Turn.Number, Mode: f.Mode, Status: fact.RunRunning,
		StartSequence: before, StartedAt: f.Timestamp, TraceParent: f.TraceParent,
	}
	if f.By != nil {
		run.RequestID = f.By.Request
	}
	s.Runs = append(s.Runs, run)
	return ""
}

func (s *Session) openStepOf(id string) (*Step, string) {
	if s.Turn == nil || s.Turn.Step == nil || s.Turn.Step.ID != id {
		return nil, fmt.Sprintf("step %s is not open", id)
	}
	return s.Turn.Step, ""
}

func (s *Session) modelTurn(r eventlog.Record, f *fact.ModelTurn) string {
	st, reason := s.openStepOf(f.StepID)
	if reason != "" {
		return reason
	}
	if st.Recorded {
		return "the step's model turn was recorded before"
	}
	*st = Step{
		ID: st.ID, Number: st.Number, Attempts: st.Attempts, Recorded: true, StopReason: f.StopReason,
		Usage: f.Usage, Message: len(s.Messages),
	}
	var text strings.Builder
	for _, p := range f.Parts {
		text.WriteString(p.Text)
		if p.ToolCall != nil {
			st.Calls = append(st.Calls, Call{ToolCall: *p.ToolCall, RunID: f.RunID})
		}
	}
	s.Messages = append(s.Messages, Message{
		Role: RoleAssistant, Turn: s.Turn.Number, Step: f.Step, Timestamp: f.Timestamp, Sequence: r.Sequence,
		Content: text.String(), Parts: f.Parts, StopReason: f.StopReason,
	})
	s.use(f.RunID, func(u *Totals) { u.modelTurn(f) })
	s.commit(r.Sequence)
	return ""
}

func (s *Session) modelFailed(f *fact.ModelFailed) string {
	// A call that fails before it has streamed anything has begun no step.
	if s.Turn != nil && (s.Turn.Step == nil || s.Turn.Step.Committed) {
		s.Turn.Step = &Step{ID: f.StepID, Number: f.Step}
	}
	st, reason := s.openStepOf(f.StepID)
	if reason != "" {
		return reason
	}
	st.Attempts = f.Attempt
	st.Failure = &ModelFailure{Error: f.Error, Code: f.Code, Retryable: f.Retryable}
	return ""
}

// toolResult finishes a call. Its message is placed in the model's order,
// regardless of the order in which calls finish.
func (t *Tree) toolResult(s *Session, r eventlog.Record, f *fact.ToolResult) string {
	st, reason := s.openStepOf(f.StepID)
	if reason != "" {
		return reason
	}
	at := st.Message + 1
	for i := range st.Calls {
		c := &st.Calls[i]
		if c.ID != f.ToolCallID {
			if c.Done {
				at++
			}
			continue
		}
		if c.Done {
			return fmt.Sprintf("call %s has a result", c.ID)
		}
		if st.Message < 0 || st.Message >= len(s.Messages) || at > len(s.Messages) { // the state is damaged
			return "the answer that it belongs to is not there"
		}
		c.Done, c.Failed, c.Result, c.Streamed = true, f.Error != "", f.Result, nil
		m := Message{
			Role: RoleTool, Turn: s.Turn.Number, Step: st.Number, Timestamp: f.Timestamp, Sequence: r.Sequence,
			ToolCallID: c.ID, ToolName: c.Name, Result: f.Result, Error: f.Error, ErrorCode: f.ErrorCode,
		}
		m.Denial = c.Denial
		if c.Answer != nil {
			m.MessageID = c.Answer.MessageID
		}
		if c.Pending != nil {
			m.AnsweredAs = c.Pending.Kind
			if c.Approval != nil {
				m.AnsweredAs = fact.PendingApproval
			}
			if child := t.Get(c.Pending.Child); child != nil && child.Over() {
				child.Delivered = child.TurnCount
			}
		}
		s.insertMessage(at, m)
		s.workspaceUsed(f)
		s.use(f.RunID, func(u *Totals) { u.toolResult(c.Name, c.Failed) })
		s.commit(r.Sequence)
		return ""
	}
	return fmt.Sprintf("call %s is not of the open step", f.ToolCallID)
}

// insertMessage places a message before the one at an index, or at the end. Annotations stay
// with the messages that they follow.
func (s *Session) insertMessage(at int, m Message) {
	if at == len(s.Messages) {
		s.Messages = append(s.Messages, m)
		return
	}
	s.Messages = slices.Insert(slices.Clip(s.Messages), at, m) // in a new list: clones share the old one
	moved := len(s.Asides)
	for moved > 0 && s.Asides[moved-1].After >= at { // they are in the order of the messages
		moved--
	}
	if moved == len(s.Asides) {
		return
	}
	s.Asides = slices.Clone(s.Asides) // as above
	for i := moved; i < len(s.Asides); i++ {
		s.Asides[i].After++
	}
}

// keepMessages removes all messages but those for which keep reports true. An annotation of a
// removed message follows the one before.
func (s *Session) keepMessages(keep func(Message) bool) {
	kept, last := []Message{}, make([]int, len(s.Messages)) // last: the index of the last one that is kept
	for i, m := range s.Messages {
		if keep(m) {
			kept = append(kept, m)
		}
		last[i] = len(kept) - 1
	}
	s.Messages, s.Asides = kept, slices.Clone(s.Asides)
	for i := range s.Asides {
		if a := &s.Asides[i]; a.After >= 0 && a.After < len(last) { // unless the state is damaged
			a.After = last[a.After]
		}
	}
}

func (s *Session) endRun(r eventlog.Record, f *fact.RunEnded) {
	if run := s.RunOf(f.RunID); run != nil {
		run.Status, run.CompletedAt = f.Status, f.Timestamp
	}
	if s.Turn != nil && s.Turn.RunID != f.RunID && s.RunOf(s.Turn.RunID) != nil {
		return // another run drives the turn
	}
	switch f.Status {
	case fact.RunCompleted:
		s.Status, s.Output, s.Turn = SessionCompleted, f.Output, nil
	case fact.RunFailed:
		s.keepPartial(r.Sequence)
		failure := &Failure{Message: f.Error, Code: f.ErrorCode, Retryable: s.Turn != nil && s.Turn.Retryable}
		s.Status, s.Error, s.Turn = SessionFailed, failure, nil
	case fact.RunStopped:
		s.Status = SessionInterrupted
	}
	s.Version++
}

// truncate truncates ranges and removes the unfinished content in them. A rollback also
// restores the state.
func (t *Tree) truncate(r eventlog.Record, f *eventlog.Truncated) string {
	before := len(t.Dead)
	if err := t.Dead.Add(r); err != nil {
		return err.Error()
	}
	for _, g := range t.Dead[before:] {
		for _, s := range t.Sessions() {
			s.truncateUnfinished(g)
			if f.AfterSequence == 0 { // a rollback cuts them itself
				s.truncateAnnotations(g)
			}
		}
	}
	if f.AfterSequence > 0 {
		return t.rollBack(f)
	}
	for _, g := range t.Dead[before:] {
		if g.AgentID == t.SessionID && g.Scope == eventlog.ScopeStream {
			t.resetStream()
		}
	}
	return ""
}

// resetStream restarts the stream. A session that has no run gets the status of a new one and
// no output or error: only its stream can have set them.
func (s *Session) resetStream() {
	s.StreamStatus = eventlog.StreamActive
	if s.CurrentRun() == nil {
		s.Status, s.Output, s.Error = SessionActive, nil, nil
	}
}

// truncateUnfinished removes unfinished content of the session that g truncates completely.
func (s *Session) truncateUnfinished(g eventlog.Range) {
	if s.SessionID != g.AgentID || s.Turn == nil || s.Turn.Step == nil {
		return
	}
	covers := func(call string, span *Span) bool {
		return span != nil && g.From <= span.From && span.To <= g.To && (g.Scope.AnyCall() || g.CallID == call)
	}
	st := s.Turn.Step
	if covers("", st.Streamed) {
		st.Streamed, st.Partial = nil, nil
	}
	for i := range st.Calls {
		if c := &st.Calls[i]; covers(c.ID, c.Streamed) {
			c.Streamed, c.Started = nil, false
		}
	}
}
