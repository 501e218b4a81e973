package openairesponses

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/helixd/helixd/agentloop/model"
)

func (m *responder) params(req model.Request) (responses.ResponseNewParams, error) {
	p := responses.ResponseNewParams{Model: m.name, Store: sdk.Bool(false)}
	if reasons(m.name) {
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if n := m.opts.MaxOutputTokens; n > 0 {
		p.MaxOutputTokens = sdk.Int(n)
	}
	if t := m.opts.Temperature; t != nil {
		p.Temperature = sdk.Float(*t)
	}
	if t := m.opts.TopP; t != nil {
		p.TopP = sdk.Float(*t)
	}
	p.Reasoning = shared.ReasoningParam{
		Effort: shared.ReasoningEffort(m.opts.Effort), Summary: shared.ReasoningSummary(m.opts.Summary),
	}
	if req.System != "" {
		p.Instructions = sdk.String(req.System)
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	for _, msg := range req.Messages {
		items, err := m.items(msg)
		if err != nil {
			return p, err
		}
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, items...)
	}
	return p, nil
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

func tool(t model.ToolSpec) responses.ToolUnionParam {
	f := responses.FunctionToolParam{
		Name:   t.Name,
		Strict: sdk.Bool(t.Strict), // the API's default asks more of schemas than users know
	}
	if t.Description != "" {
		f.Description = sdk.String(t.Description)
	}
	schema := t.InputSchema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	// As an extra field the schema keeps its bytes: models read a schema's
	// properties in their order.
	f.SetExtraFields(map[string]any{"parameters": schema})
	return responses.ToolUnionParam{OfFunction: &f}
}
