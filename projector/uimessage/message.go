package uimessage

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Message is a UI message. Ids are "msg-{index}"; an unfinished message's id
// ends in "-partial" (document 001).
type Message struct {
	ID       string          `json:"id"`
	Role     string          `json:"role"` // user or assistant
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Parts    []Part          `json:"parts"`
}

// Part is one part of a message: one of the types below.
type Part interface{ part() }

// The parts. State is "streaming" or "done" of text and reasoning.
type (
	// Text is text of a user or an assistant.
	Text struct {
		Type  string `json:"type"` // text
		Text  string `json:"text"`
		State string `json:"state,omitempty"`
	}

	// Reasoning is a model's reasoning.
	Reasoning struct {
		Type  string `json:"type"` // reasoning
		Text  string `json:"text"`
		State string `json:"state,omitempty"`
	}

	// StepStart separates the steps of a turn.
	StepStart struct {
		Type string `json:"type"` // step-start
	}

	// File is an attachment.
	File struct {
		Type      string `json:"type"` // file
		URL       string `json:"url"`
		MediaType string `json:"mediaType"`
		Filename  string `json:"filename,omitempty"`
	}

	// ToolInputStreaming is a call whose arguments are still coming.
	ToolInputStreaming struct {
		Tool
	}

	// ToolInputAvailable is a call that has no result yet.
	ToolInputAvailable struct {
		Tool
		Input json.RawMessage `json:"input"`
	}

	// ToolApproval is a call that a person has to approve, or has decided about.
	ToolApproval struct {
		Tool
		Input    json.RawMessage `json:"input"`
		Approval Approval        `json:"approval"`
	}

	// SourceURL and SourceDocument are what the model cites.
	SourceURL struct {
		Type     string `json:"type"` // source-url
		SourceID string `json:"sourceId"`
		URL      string `json:"url"`
		Title    string `json:"title,omitempty"`
	}
	SourceDocument struct {
		Type      string `json:"type"` // source-document
		SourceID  string `json:"sourceId"`
		MediaType string `json:"mediaType"`
		Title     string `json:"title"`
		Filename  string `json:"filename,omitempty"`
	}

	// ToolOutputAvailable is a call with its result.
	ToolOutputAvailable struct {
		Tool
		Input  json.RawMessage `json:"input"`
		Output json.RawMessage `json:"output"`
	}

	// ToolOutputError is a call that failed.
	ToolOutputError struct {
		Tool
		Input     json.RawMessage `json:"input"`
		ErrorText string          `json:"errorText"`
	}
)

// Tool is what the parts of a tool call share. Type is "tool-{name}".
type Tool struct {
	Type             string `json:"type"`
	ToolCallID       string `json:"toolCallId"`
	State            string `json:"state"`
	ProviderExecuted bool   `json:"providerExecuted,omitempty"`
}

// Approval is what a person has said of a call; Approved is nil before.
type Approval struct {
	ID       string `json:"id"`
	Approved *bool  `json:"approved,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

func (Text) part()           {}
func (Reasoning) part()      {}
func (StepStart) part()      {}
func (File) part()           {}
func (SourceURL) part()      {}
func (SourceDocument) part() {}
func (Tool) part()           {}

// Render returns the session's messages. What is still streaming is the last
// message's end, under an id that ends in "-partial".
func Render(s *projector.Session) []Message {
	b := &builder{session: s, results: map[string]*projector.Message{}}
	for i := range s.Messages {
		if m := &s.Messages[i]; m.Role == projector.RoleTool {
			b.results[m.ToolCallID] = m
		}
	}
	for i := range s.Messages {
		b.add(&s.Messages[i])
	}
	b.addUnfinished()
	if b.messages == nil {
		return []Message{}
	}
	return b.messages
}

func messageID(index int) string { return fmt.Sprintf("msg-%d", index) }

type builder struct {
	session  *projector.Session
	results  map[string]*projector.Message
	messages []Message
	turn     int // of the last message if that is an assistant's, else 0
}

func (b *builder) add(m *projector.Message) {
	switch {
	case m.Role == projector.RoleUser && !m.Hidden():
		ui := Message{ID: messageID(len(b.messages)), Role: "user", Metadata: m.Metadata, Parts: []Part{}}
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
		b.messages = append(b.messages, Message{ID: messageID(len(b.messages)), Role: "assistant", Parts: []Part{}})
		b.turn = turn
	}
	return &b.messages[len(b.messages)-1].Parts
}

// turnPart returns nil for what is the provider's only.
func (b *builder) turnPart(p eventlog.TurnPart) Part {
	switch {
	case p.ToolCall != nil:
		return b.toolPart(*p.ToolCall)
	case p.Source != nil && p.Source.URL != "":
		return SourceURL{Type: "source-url", SourceID: p.Source.ID, URL: p.Source.URL, Title: p.Source.Title}
	case p.Source != nil:
		return SourceDocument{
			Type: "source-document", SourceID: p.Source.ID, MediaType: p.Source.MediaType, Title: p.Source.Title,
			Filename: p.Source.Filename,
		}
	case p.File != nil:
		return File{Type: "file", URL: p.File.Data, MediaType: p.File.MediaType, Filename: p.File.Filename}
	case p.Reasoning != "":
		return Reasoning{Type: "reasoning", Text: p.Reasoning, State: "done"}
	case p.Text != "" || p.ProviderData == nil:
		return Text{Type: "text", Text: p.Text, State: "done"}
	}
	return nil
}

func (b *builder) toolPart(c eventlog.ToolCall) Part {
	tool := Tool{Type: "tool-" + c.Name, ToolCallID: c.ID, ProviderExecuted: true}
	r, ok := b.results[c.ID]
	waits := b.waiting(c.ID)
	if waits != nil && waits.Pending.Kind == eventlog.PendingClient || ok && r.AnsweredAs == eventlog.PendingClient {
		tool.ProviderExecuted = false // else the client would not execute it
	}
	switch {
	case !ok && waits != nil && waits.Pending.Kind == eventlog.PendingApproval && waits.Answer == nil:
		tool.State = "approval-requested"
		return ToolApproval{Tool: tool, Input: c.Arguments, Approval: Approval{ID: waits.Pending.ApprovalID}}
	case !ok && waits != nil && waits.Pending.Kind == eventlog.PendingApproval:
		tool.State = "approval-responded"
		return ToolApproval{Tool: tool, Input: c.Arguments, Approval: Approval{
			ID: waits.Pending.ApprovalID, Approved: &waits.Answer.Approved, Reason: waits.Answer.Reason,
		}}
	case !ok:
		tool.State = "input-available"
		return ToolInputAvailable{Tool: tool, Input: c.Arguments}
	case r.Error != "":
		tool.State = "output-error"
		return ToolOutputError{Tool: tool, Input: c.Arguments, ErrorText: r.Error}
	default:
		tool.State = "output-available"
		return ToolOutputAvailable{Tool: tool, Input: c.Arguments, Output: r.Result}
	}
}

// waiting returns a call of the open step that waits for a person or has its
// answer, or nil.
func (b *builder) waiting(id string) *projector.Call {
	if b.session.Turn == nil || b.session.Turn.Step == nil {
		return nil
	}
	for i := range b.session.Turn.Step.Calls {
		if c := &b.session.Turn.Step.Calls[i]; c.ID == id && c.Pending != nil {
			return c
		}
	}
	return nil
}

func (b *builder) addUnfinished() {
	turn := b.session.Turn
	if turn == nil || turn.Before == nil {
		return
	}
	parts := b.assistant(turn.Number)
	if st := turn.Step; st != nil && !st.Recorded && len(st.Partial) > 0 {
		*parts = append(*parts, StepStart{Type: "step-start"})
		for _, p := range st.Partial {
			*parts = append(*parts, partial(p))
		}
	}
	if len(*parts) == 0 {
		b.messages = b.messages[:len(b.messages)-1]
		return
	}
	b.messages[len(b.messages)-1].ID += "-partial"
}

func partial(p projector.PartialPart) Part {
	state := "streaming"
	if p.Closed {
		state = "done"
	}
	switch p.Kind {
	case projector.PartialToolCall:
		return ToolInputStreaming{Tool{
			Type: "tool-" + p.ToolName, ToolCallID: p.CallID, State: "input-streaming", ProviderExecuted: true,
		}}
	case projector.PartialReasoning:
		return Reasoning{Type: "reasoning", Text: string(p.Text), State: state}
	default:
		return Text{Type: "text", Text: string(p.Text), State: state}
	}
}
