package uimessage

import "encoding/json"

// Message is a UI message. Ids are "msg-{index}"; an unfinished message's id
// ends in "-partial".
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

	// ToolInputStreaming is a call that has not begun: its arguments, if they
	// are not there, are still coming.
	ToolInputStreaming struct {
		Tool
		Input json.RawMessage `json:"input,omitempty"`
	}

	// ToolInputAvailable is a call that has no result yet.
	ToolInputAvailable struct {
		Tool
		Input json.RawMessage `json:"input"`
	}

	// ToolApproval is a call that a person has to approve, has decided about, or
	// has denied.
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
	Type       string `json:"type"`
	ToolCallID string `json:"toolCallId"`
	State      string `json:"state"`
	// ProviderExecuted reports whether the server executes the call. It is absent while the
	// client executes it, or a person has to be asked.
	ProviderExecuted *bool `json:"providerExecuted,omitempty"`
}

// Approval is a person's decision about a call; Approved is nil before.
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
