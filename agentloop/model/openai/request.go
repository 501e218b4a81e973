package openai

import (
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
)

// request is the body of a call; see https://platform.openai.com/docs/api-reference/chat/create.
type request struct {
	Model               string        `json:"model"`
	Messages            []any         `json:"messages"`
	Stream              bool          `json:"stream"`
	StreamOptions       streamOptions `json:"stream_options"`
	MaxCompletionTokens int64         `json:"max_completion_tokens,omitempty"`
	MaxTokens           int64         `json:"max_tokens,omitempty"`
	Temperature         *float64      `json:"temperature,omitempty"`
	TopP                *float64      `json:"top_p,omitempty"`
	TopK                *int64        `json:"top_k,omitempty"`
	FrequencyPenalty    *float64      `json:"frequency_penalty,omitempty"`
	PresencePenalty     *float64      `json:"presence_penalty,omitempty"`
	Seed                *int64        `json:"seed,omitempty"`
	Stop                []string      `json:"stop,omitempty"`
	ReasoningEffort     string        `json:"reasoning_effort,omitempty"`
	Tools               []tool        `json:"tools,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// textMessage is a message of any role but the model's: its content is a text or, of a user's
// message with files, a list of parts.
type textMessage struct {
	Role       string `json:"role"`
	Content    any    `json:"content"`
	ToolCallID string `json:"tool_call_id,omitempty"`
}

type assistantMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolUsed `json:"tool_calls,omitempty"`
}

type toolUsed struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function functionUsed `json:"function"`
}

type functionUsed struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type contentPart struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
	File     *fileData `json:"file,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

type fileData struct {
	FileData string `json:"file_data"`
	Filename string `json:"filename"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"` // as given: models read a schema's properties in their order
}

func (m *chat) request(req model.Request) request {
	r := request{
		Model: m.name, Messages: []any{}, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		Temperature: m.opts.Temperature, TopP: m.opts.TopP, TopK: m.opts.TopK, FrequencyPenalty: m.opts.FrequencyPenalty,
		PresencePenalty: m.opts.PresencePenalty, Seed: m.opts.Seed, Stop: m.opts.StopSequences, ReasoningEffort: m.opts.Effort,
	}
	if n := max(m.opts.MaxOutputTokens, 0); m.ownServer() {
		r.MaxCompletionTokens = n
	} else {
		r.MaxTokens = n
	}
	if req.System != "" {
		r.Messages = append(r.Messages, textMessage{Role: "system", Content: req.System})
	}
	for _, msg := range req.Messages {
		r.Messages = append(r.Messages, message(msg))
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, tool{Type: "function", Function: function{
			Name: t.Name, Description: t.Description, Strict: t.Strict, Parameters: t.InputSchema,
		}})
	}
	return r
}

func message(m model.Message) any {
	switch {
	case m.Role == model.RoleAssistant:
		return answered(m)
	case m.Role == model.RoleTool:
		return textMessage{Role: "tool", Content: m.Content, ToolCallID: m.ToolCallID}
	case len(m.Files) == 0:
		return textMessage{Role: "user", Content: m.Content}
	default:
		return textMessage{Role: "user", Content: contentParts(m)}
	}
}

// answered leaves reasoning, sources and files out: the API has no
// place for them.
func answered(m model.Message) assistantMessage {
	a := assistantMessage{Role: "assistant"}
	for _, part := range m.Parts {
		if c := part.ToolCall; c != nil {
			a.ToolCalls = append(a.ToolCalls, toolUsed{
				ID: c.ID, Type: "function", Function: functionUsed{Name: c.Name, Arguments: provider.Arguments(*c)},
			})
		}
	}
	// Content may be missing beside tool calls only; empty text is refused by
	// some servers there.
	if text := m.Text(); text != "" || len(a.ToolCalls) == 0 {
		a.Content = &text
	}
	return a
}

func contentParts(m model.Message) []contentPart {
	var parts []contentPart
	if m.Content != "" {
		parts = append(parts, contentPart{Type: "text", Text: m.Content})
	}
	for _, f := range m.Files {
		if strings.HasPrefix(f.MediaType, "image/") {
			parts = append(parts, contentPart{Type: "image_url", ImageURL: &imageURL{f.Data}})
			continue
		}
		name := f.Filename
		if name == "" {
			name = "file" // data without a name is refused
		}
		parts = append(parts, contentPart{Type: "file", File: &fileData{FileData: f.Data, Filename: name}})
	}
	return parts
}
