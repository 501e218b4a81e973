package uimessage

import (
	"fmt"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// MessageID names the message at an index of the conversation as clients see
// it; role is user or assistant. It must always give the same answer.
type MessageID func(index int, role string) string

// Partial ends the id of a message that is still streaming.
const Partial = "-partial"

func indexID(index int, _ string) string { return fmt.Sprintf("msg-%d", index) }

// Render returns the root's conversation. What is still streaming is the last
// message's end, under an id that ends in [Partial]; at a pause it is idle,
// and has the id that the rest will come under. A nil id numbers the
// messages.
func Render(t *projector.Tree, id MessageID) []Message {
	b := build(t, id)
	if b.unfinished() {
		b.messages[len(b.messages)-1].ID += Partial
	}
	return b.messages
}

// ReplyID returns the id of the assistant's message that answers the last user
// message, whether it is there yet or not.
func ReplyID(t *projector.Tree, id MessageID) string {
	b := build(t, id)
	if n := len(b.messages); n > 0 && b.turn > 0 && b.turn == t.TurnCount {
		return b.messages[n-1].ID
	}
	return b.id(len(b.messages), roleAssistant)
}

const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

func build(t *projector.Tree, id MessageID) *builder {
	if id == nil {
		id = indexID
	}
	b := &builder{
		tree: t, id: id, annotations: t.Shown(), results: map[string]*projector.Message{}, questions: map[question]*fact.ToolCall{},
		messages: []Message{},
	}
	for _, s := range t.Sessions() {
		b.index(s)
	}
	b.partial = slices.ContainsFunc(t.Left(), func(g eventlog.Range) bool { return g.CallID == "" })
	b.addAsides(-1)
	for i := range t.Messages {
		b.add(&t.Messages[i])
		b.addAsides(i)
	}
	if b.partialBefore(t.Head + 1) {
		b.addPartial()
	}
	b.addAsides(len(t.Messages))
	return b
}

type builder struct {
	tree        *projector.Tree
	id          MessageID
	annotations []projector.Annotation // the rest
	results     map[string]*projector.Message
	questions   map[question]*fact.ToolCall // the calls of sub-agents
	messages    []Message
	turn        int  // of the last message if that is an assistant's, else 0
	asked       bool // the last step is one that sub-agents' questions have to themselves
	partial     bool // what is still streaming is there, or will be truncated
}

// question is a call of a sub-agent's session.
type question struct{ session, call string }

// index finds the calls and results of a session.
func (b *builder) index(s *projector.Session) {
	for i := range s.Messages {
		m := &s.Messages[i]
		if m.Role == projector.RoleTool {
			b.results[m.ToolCallID] = m
		}
		for _, p := range m.Parts {
			if p.ToolCall != nil && s.SessionID != b.tree.SessionID {
				b.questions[question{s.SessionID, p.ToolCall.ID}] = p.ToolCall
			}
		}
	}
}

func (b *builder) add(m *projector.Message) {
	switch {
	case m.Role == projector.RoleUser && !m.Hidden():
		ui := Message{ID: b.id(len(b.messages), roleUser), Role: roleUser, Metadata: m.Metadata, Parts: []Part{}}
		if m.Content != "" {
			ui.Parts = append(ui.Parts, Text{Type: "text", Text: m.Content})
		}
		for _, f := range m.Files {
			ui.Parts = append(ui.Parts, File{Type: "file", URL: f.Data, MediaType: f.MediaType, Filename: f.Filename})
		}
		b.messages, b.turn = append(b.messages, ui), 0
	case m.Role == projector.RoleAssistant:
		parts := b.assistant(m.Turn)
		*parts = append(*parts, StepStart{Type: "step-start"})
		b.asked = false
		for _, p := range m.Parts {
			if part := b.turnPart(p); part != nil {
				*parts = append(*parts, part)
			}
		}
	}
}

// assistant returns the parts of the turn's assistant message.
func (b *builder) assistant(turn int) *[]Part {
	if b.turn != turn {
		b.messages = append(b.messages, Message{
			ID: b.id(len(b.messages), roleAssistant), Role: roleAssistant, Parts: []Part{},
		})
		b.turn = turn
	}
	return &b.messages[len(b.messages)-1].Parts
}

// addAsides adds what follows the message at an index.
func (b *builder) addAsides(after int) {
	for ; len(b.annotations) > 0; b.annotations = b.annotations[1:] {
		a := b.annotations[0]
		if a.After > after || after < len(b.tree.Messages) && b.partialBefore(a.Sequence) {
			return
		}
		if a.Partial != nil {
			b.addParts(a.Turn, a.Partial, true)
		} else if part := b.annotationPart(a); part != nil {
			parts := b.assistant(a.Turn)
			if a.CallID != "" && !b.asked {
				*parts = append(*parts, StepStart{Type: "step-start"})
				b.asked = true
			}
			*parts = append(*parts, part)
		}
	}
}

// partialBefore reports whether the streaming content is not in the messages yet, and
// began before a record.
func (b *builder) partialBefore(seq uint64) bool {
	turn := b.tree.Turn
	return !b.partial && turn != nil && turn.Step != nil && !turn.Step.Recorded && turn.Step.Streamed != nil &&
		turn.Step.Streamed.From < seq
}

func (b *builder) annotationPart(a projector.Annotation) Part {
	if a.CallID == "" {
		return annotationData(a)
	}
	if c := b.questions[question{a.Session, a.CallID}]; c != nil {
		return b.toolPart(*c)
	}
	return nil
}

// turnPart returns nil for what is the provider's only.
func (b *builder) turnPart(p fact.TurnPart) Part {
	switch {
	case p.ToolCall != nil:
		return b.toolPart(*p.ToolCall)
	case p.Source != nil:
		return sourcePart(p.Source)
	case p.File != nil:
		return filePart(p.File)
	case p.Reasoning != "":
		return Reasoning{Type: "reasoning", Text: p.Reasoning, State: "done"}
	case p.Text != "" || p.ProviderData == nil:
		return Text{Type: "text", Text: p.Text, State: "done"}
	}
	return nil
}

func (b *builder) toolPart(c fact.ToolCall) Part {
	tool := Tool{Type: "tool-" + c.Name, ToolCallID: c.ID}
	if r := b.results[c.ID]; r != nil {
		return resultPart(tool, c, r)
	}
	_, open := b.tree.OpenCall(c.ID)
	switch {
	case open == nil, open.Pending == nil && open.Started, open.Pending != nil && open.Pending.Kind == fact.PendingChild,
		open.Pending != nil && open.Streamed != nil: // it runs
		tool.State, tool.ProviderExecuted = "input-available", &yes
		return ToolInputAvailable{Tool: tool, Input: c.Arguments}
	case open.Pending == nil: // who executes it is not known yet
		tool.State = "input-streaming"
		return ToolInputStreaming{Tool: tool, Input: c.Arguments}
	case open.Pending.Kind == fact.PendingApproval:
		return approvalPart(tool, open)
	default:
		return clientPart(tool, open)
	}
}

func resultPart(tool Tool, c fact.ToolCall, r *projector.Message) Part {
	tool.ProviderExecuted = &yes
	if r.AnsweredAs == fact.PendingClient {
		tool.ProviderExecuted = &no
	}
	switch {
	case r.Denial != nil:
		tool.State, tool.ProviderExecuted = "output-denied", nil
		return ToolApproval{Tool: tool, Input: c.Arguments, Approval: Approval{
			ID: r.Denial.ApprovalID, Approved: &no, Reason: r.Denial.Reason,
		}}
	case r.Error != "":
		tool.State = "output-error"
		return ToolOutputError{Tool: tool, Input: c.Arguments, ErrorText: r.Error}
	default:
		tool.State = "output-available"
		return ToolOutputAvailable{Tool: tool, Input: c.Arguments, Output: r.Result}
	}
}

// approvalPart is a call that waits for an approval, or has it and does not run
// yet.
func approvalPart(tool Tool, c *projector.Call) Part {
	part := ToolApproval{Tool: tool, Input: c.Arguments, Approval: Approval{ID: c.Pending.ApprovalID}}
	part.State = "approval-requested"
	if c.Answer != nil {
		part.State = "approval-responded"
		part.Approval.Approved, part.Approval.Reason = &c.Answer.Approved, c.Answer.Reason
	}
	return part
}

// clientPart is a call that the client executes, or has executed.
func clientPart(tool Tool, c *projector.Call) Part {
	switch a := c.Answer; {
	case a != nil && a.Error != "":
		tool.State, tool.ProviderExecuted = "output-error", &no
		return ToolOutputError{Tool: tool, Input: c.Arguments, ErrorText: a.Error}
	case a != nil && a.Result != nil:
		tool.State, tool.ProviderExecuted = "output-available", &no
		return ToolOutputAvailable{Tool: tool, Input: c.Arguments, Output: a.Result}
	}
	tool.State = "input-available"
	return ToolInputAvailable{Tool: tool, Input: c.Arguments}
}

// addPartial adds what is still streaming.
func (b *builder) addPartial() {
	b.partial = true
	b.addParts(b.tree.Turn.Number, b.tree.Turn.Step.Partial, b.tree.Waits())
}

// addParts adds a step that was never recorded. over: nothing streams any more.
func (b *builder) addParts(turn int, all []projector.PartialPart, over bool) {
	parts := b.assistant(turn)
	*parts = append(*parts, StepStart{Type: "step-start"})
	for _, p := range all {
		*parts = append(*parts, partial(p, over))
	}
	b.asked = false
}

// unfinished reports whether the last message is growing.
func (b *builder) unfinished() bool {
	return b.tree.Turn != nil && b.turn == b.tree.Turn.Number && !b.tree.Waits()
}

func sourcePart(s *fact.Source) Part {
	if s.URL != "" {
		return SourceURL{Type: "source-url", SourceID: s.ID, URL: s.URL, Title: s.Title}
	}
	return SourceDocument{
		Type: "source-document", SourceID: s.ID, MediaType: s.MediaType, Title: s.Title, Filename: s.Filename,
	}
}

// filePart has no name: streams can't carry it.
func filePart(f *fact.MessageFile) Part {
	return File{Type: "file", URL: f.Data, MediaType: f.MediaType}
}

func partial(p projector.PartialPart, over bool) Part {
	switch {
	case p.Source != nil:
		return sourcePart(p.Source)
	case p.File != nil:
		return filePart(p.File)
	}
	state := "streaming"
	if p.Closed || over {
		state = "done"
	}
	switch p.Kind {
	case projector.PartialToolCall:
		return ToolInputStreaming{Tool{
			Type: "tool-" + p.ToolName, ToolCallID: p.CallID, State: "input-streaming",
		}, nil}
	case projector.PartialReasoning:
		return Reasoning{Type: "reasoning", Text: string(p.Text), State: state}
	default:
		return Text{Type: "text", Text: string(p.Text), State: state}
	}
}
