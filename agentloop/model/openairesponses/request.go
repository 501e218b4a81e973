package openairesponses

import (
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
)

// request is the body of a call; see https://platform.openai.com/docs/api-reference/responses/create.
type request struct {
	Model           string     `json:"model"`
	Input           []any      `json:"input"`
	Stream          bool       `json:"stream"`
	Store           bool       `json:"store"`
	Include         []string   `json:"include,omitempty"`
	Instructions    string     `json:"instructions,omitempty"`
	MaxOutputTokens int64      `json:"max_output_tokens,omitempty"`
	Temperature     *float64   `json:"temperature,omitempty"`
	TopP            *float64   `json:"top_p,omitempty"`
	Reasoning       *reasoning `json:"reasoning,omitempty"`
	Tools           []tool     `json:"tools,omitempty"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Strict      bool            `json:"strict"`     // the API's default asks more of schemas than users know
	Parameters  json.RawMessage `json:"parameters"` // as given: models read a schema's properties in their order
}

func (m *responder) request(req model.Request) (request, error) {
	r := request{
		Model: m.name, Input: []any{}, Stream: true, Instructions: req.System, MaxOutputTokens: max(m.opts.MaxOutputTokens, 0),
		Temperature: m.opts.Temperature, TopP: m.opts.TopP,
	}
	if reasons(m.name) {
		r.Include = []string{"reasoning.encrypted_content"}
	}
	if asked := (reasoning{m.opts.Effort, m.opts.Summary}); asked != (reasoning{}) {
		r.Reasoning = &asked
	}
	for _, t := range req.Tools {
		schema := t.InputSchema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		r.Tools = append(r.Tools, tool{Type: "function", Name: t.Name, Description: t.Description, Strict: t.Strict, Parameters: schema})
	}
	for _, msg := range req.Messages {
		items, err := m.items(msg)
		if err != nil {
			return r, err
		}
		r.Input = append(r.Input, items...)
	}
	return r, nil
}

// reasons says whether a model may reason. Those that do not refuse to be
// asked for encrypted reasoning.
func reasons(name string) bool {
	name = strings.TrimPrefix(strings.ToLower(name[strings.LastIndex(name, "/")+1:]), "ft:")
	for _, prefix := range []string{"gpt-3", "gpt-4", "gpt-5-chat", "chatgpt-4"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	return true
}
