package agui

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// folder turns the records of a run into the events of its stream. It is pure: the same records
// make the same events.
//
// Calls of tools are shown as the model makes them, and their results when they are recorded.
// What a crash or a failure of the model takes back, a snapshot of the messages takes back.
type folder struct {
	session, run string // by their names in the log
	name         string // the client's name of the run
	modern       bool   // the client speaks protocolVersion
	kept         kept
	// state returns the session's state at a sequence.
	state func(uint64) (*projector.Tree, error)
	// emit gets the events; nil: none are wanted.
	emit func(object)

	answer  string // the id of the message of the step that is open, or was last
	step    string // the step that is open, or empty
	text    bool   // the message is open
	thought bool   // its reasoning is open
	begun   uint64 // the record that began what is shown of an answer that is not recorded; 0: nothing is
	thinks  bool   // that has reasoning

	calls    map[string]*call
	theirs   map[string]bool // calls of which the client has the result
	waits    map[string]bool // calls of sub-agents that wait for the client's result
	children map[string]*activity
	patched  []uint64 // records that have changed the state
	usage    []*usage

	asked  bool   // the run's request has come
	end    object // the last event; nil: the run has not ended
	passed bool   // the request of another run has ended it
}

// call is a call of a tool that the client knows.
type call struct {
	name   string
	open   bool // its arguments are not complete
	answer bool // the model's answer has it
}

// usage is what a run has used of a model.
type usage struct {
	model string
	fact.TokenUsage
}

func newFolder(session, run string, state func(uint64) (*projector.Tree, error)) *folder {
	return &folder{
		session: session, run: run, state: state, calls: map[string]*call{}, theirs: map[string]bool{}, waits: map[string]bool{},
		children: map[string]*activity{},
	}
}

// send makes an event.
func (f *folder) send(kind string, data object) {
	if f.emit != nil {
		data["type"] = kind
		f.emit(data)
	}
}

// fold takes the session's records in order, from the run's request on.
func (f *folder) fold(r eventlog.Record) error {
	switch {
	case f.end != nil:
	case r.Kind == eventlog.KindFact:
		if what, err := r.Fact(); err == nil {
			return f.takeFact(r, what)
		}
	case f.asked:
		if c, err := r.Chunk(); err == nil {
			f.takeChunk(r, c)
		}
	}
	return nil
}

func (f *folder) takeFact(r eventlog.Record, what fact.Fact) error {
	own := r.Agent == f.session
	if asked, ok := what.(*fact.RunRequested); ok && own {
		switch {
		case asked.RunID == f.run:
			return f.begin(r, asked)
		case f.asked: // its node died, and another request has continued the session
			f.passed = true
			return f.stop("another run has continued the thread", "interrupted")
		}
	}
	if !f.asked {
		return nil
	}
	switch what := what.(type) {
	case *fact.UserMessage:
		if m := (projector.Message{
			Content: what.Content, Files: what.Files, Metadata: what.Metadata, MessageID: what.MessageID, Sequence: r.Sequence,
		}); own && !m.Hidden() {
			f.said(&m)
		}
	case *fact.ModelTurn:
		f.use(what)
		if own {
			f.commit(what)
		} else {
			f.childSays(r.Agent, what)
		}
	case *fact.CallSuspended:
		f.waits[what.ToolCallID] = what.Kind == fact.PendingClient && !own
	case *fact.ToolResult:
		f.result(what, own)
	case *eventlog.Truncated:
		if what.AfterSequence > 0 {
			return f.stop("the thread has gone back to before", "interrupted")
		}
		return f.takeBack(r, what.Ranges)
	case *fact.RunEnded:
		if own && what.RunID == f.run {
			return f.runEnded(r, what)
		}
	}
	return nil
}

func (f *folder) begin(r eventlog.Record, what *fact.RunRequested) error {
	f.asked, f.name = true, cmp.Or(what.Name, what.RunID)
	if k := (kept{}); json.Unmarshal(what.Client, &k) == nil && k.Protocol == protocolName {
		f.kept = k
		f.modern = k.Version == protocolVersion
	}
	t, err := f.state(r.Sequence)
	if err != nil {
		return err
	}
	for s, c := range t.OpenCalls() {
		if s == &t.Session || c.Pending != nil && c.Pending.Kind != fact.PendingChild {
			f.calls[c.ID] = &call{answer: true}
		}
		if clientHas(c) {
			f.theirs[c.ID] = true
		}
	}
	f.started(t)
	f.send(typeStateSnapshot, object{"snapshot": t.CustomState.Bytes()})
	if wentBack(t) {
		// Clients keep reasoning that is not there any more if the snapshot names none: it names
		// that of the next step, which is empty yet.
		f.send(typeMessagesSnapshot, object{"messages": append(messagesOf(t), reasoningMessage(stepID(t.Turn.Number, t.StepCount+1), ""))})
	}
	return nil
}

// started begins the stream. It says what the run was requested with, for clients that have not
// requested it.
func (f *folder) started(t *projector.Tree) {
	e := object{"threadId": f.session, "runId": f.name, "input": object{
		"threadId": f.session, "runId": f.name, "messages": broughtBy(t), "tools": []any{}, "context": []any{},
	}}
	if f.kept.Parent != "" {
		e["parentRunId"] = f.kept.Parent
	}
	if f.modern {
		e["protocolVersion"] = protocolVersion
	}
	f.send(typeRunStarted, e)
}

// wentBack reports whether the session went back before its last run: clients have messages
// that are no longer there.
func wentBack(t *projector.Tree) bool {
	n := len(t.Runs)
	if n == 0 {
		return false
	}
	last := t.Runs[n-1]
	return last.Mode == fact.ModeFromCheckpoint || last.Mode == fact.ModeRetry || n > 1 && t.Runs[n-2].Truncated
}

// said shows a message of the user that came while the run continued.
func (f *folder) said(m *projector.Message) {
	if m.Content == "" {
		return
	}
	f.close()
	id := messageID(m, "user")
	f.send(typeTextStart, object{"messageId": id, "role": "user"})
	f.send(typeTextContent, object{"messageId": id, "delta": m.Content})
	f.send(typeTextEnd, object{"messageId": id})
}

// use counts what a model call has used.
func (f *folder) use(what *fact.ModelTurn) {
	for _, u := range f.usage {
		if u.model == what.Model {
			u.TokenUsage = u.Plus(what.Usage)
			return
		}
	}
	f.usage = append(f.usage, &usage{what.Model, what.Usage})
}

func (f *folder) usageShown() []any {
	all := []any{}
	for _, u := range f.usage {
		o := object{
			"inputTokens": u.Prompt, "outputTokens": u.Completion, "totalTokens": u.Prompt + u.Completion, "reasoningTokens": u.Reasoning,
			"cachedInputTokens": u.Cached, "cacheWriteInputTokens": u.CacheWrite,
		}
		if u.model != "" {
			o["model"] = u.model
		}
		all = append(all, o)
	}
	return all
}

// takeBack discards what truncated records have shown.
func (f *folder) takeBack(r eventlog.Record, ranges []eventlog.Range) error {
	said, changed := false, false
	for _, g := range ranges {
		if g.AgentID != f.session {
			continue
		}
		said = said || g.CallID == "" && f.begun >= g.From && f.begun <= g.To
		for _, seq := range f.patched {
			changed = changed || g.From <= seq && seq <= g.To
		}
	}
	if !said && !changed {
		return nil
	}
	thinks := f.thinks
	if said {
		f.closeStep()
		f.begun, f.thinks = 0, false
		for id, c := range f.calls {
			if !c.answer {
				delete(f.calls, id)
			}
		}
	}
	if f.emit == nil {
		return nil
	}
	t, err := f.state(r.Sequence)
	if err != nil {
		return err
	}
	if said {
		messages := messagesOf(t)
		if thinks { // clients keep reasoning that no snapshot names
			messages = append(messages, reasoningMessage(f.answer, ""))
		}
		f.send(typeMessagesSnapshot, object{"messages": messages})
	}
	if changed {
		f.send(typeStateSnapshot, object{"snapshot": t.CustomState.Bytes()})
	}
	return nil
}

// runEnded ends the stream. A run that waits for a client has finished: the client's answer
// begins the next one.
func (f *folder) runEnded(r eventlog.Record, what *fact.RunEnded) error {
	switch {
	case what.Status == fact.RunFailed && what.ErrorCode == agentloop.CodeAborted:
		return f.stop(cmp.Or(what.Error, "the run was aborted"), agentloop.CodeAborted)
	case what.Status == fact.RunStopped:
		return f.stop("the run was interrupted", "interrupted")
	case what.Status == fact.RunFailed:
		f.fail(cmp.Or(what.Error, "the run failed"), what.ErrorCode)
		return nil
	}
	f.closeStep()
	e := object{"threadId": f.session, "runId": f.name, "outcome": object{"type": "success"}}
	if len(f.usage) > 0 {
		e["usage"] = f.usageShown()
	}
	if len(what.Output) > 0 && string(what.Output) != "null" {
		e["result"] = what.Output
	}
	if what.Status != fact.RunCompleted {
		t, err := f.state(r.Sequence)
		if err != nil {
			return err
		}
		outcome := f.outcome(t)
		if outcome["type"] == "interrupt" { // what the client needs to go on comes before
			f.send(typeStateSnapshot, object{"snapshot": t.CustomState.Bytes()})
			f.send(typeMessagesSnapshot, object{"messages": messagesOf(t)})
		}
		e["outcome"] = outcome
	}
	f.finish(typeRunFinished, e)
	return nil
}

// stop ends the stream of a run that was stopped. Clients of earlier versions know no such
// outcome.
func (f *folder) stop(why, code string) error {
	if !f.modern {
		f.fail(why, code)
		return nil
	}
	f.closeStep()
	f.finish(typeRunFinished, object{"threadId": f.session, "runId": f.name, "outcome": object{"type": "cancelled"}})
	return nil
}

func (f *folder) fail(why, code string) {
	f.closeStep()
	e := runError(why, code)
	if len(f.usage) > 0 {
		e["usage"] = f.usageShown()
	}
	f.finish(typeRunError, e)
}

func (f *folder) finish(kind string, e object) {
	e["type"] = kind
	f.end = e
	f.send(kind, e)
}

// outcome returns how a run has ended that has not failed, in the session's state.
func (f *folder) outcome(t *projector.Tree) object {
	interrupts, calls := waiting(t)
	switch {
	case len(interrupts) > 0:
		return object{"type": "interrupt", "interrupts": interrupts}
	case f.modern && len(calls) > 0:
		return object{"type": "success", "pendingToolCallIds": calls}
	}
	return object{"type": "success"}
}

// waiting returns what a session waits for: approvals, and the results of the client's tools.
func waiting(t *projector.Tree) (interrupts []any, calls []string) {
	for _, a := range t.AwaitedCalls() {
		c := a.Call
		if c.Pending.Kind != fact.PendingApproval {
			calls = append(calls, c.ID)
			continue
		}
		i := object{
			"id": c.Pending.ApprovalID, "reason": "tool_call", "toolCallId": c.ID, "message": "Approve the call of " + c.Name + "?",
			"responseSchema": approvalSchema, "metadata": object{"helixd": object{"toolName": c.Name, "input": c.Arguments, "sessionId": a.Session.SessionID}},
		}
		if c.Pending.Deadline > 0 {
			i["expiresAt"] = time.UnixMilli(c.Pending.Deadline).UTC().Format(time.RFC3339Nano)
		}
		interrupts = append(interrupts, i)
	}
	return interrupts, calls
}

// approvalSchema is what the answer to an interrupt must fit.
var approvalSchema = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}`)
