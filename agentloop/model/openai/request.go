package openai

import (
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
)

func (m *chat) params(req model.Request) sdk.ChatCompletionNewParams {
	p := sdk.ChatCompletionNewParams{
		Model:         m.name,
		StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: sdk.Bool(true)},
	}
	if n := m.opts.MaxOutputTokens; n > 0 {
		if m.ownServer() {
			p.MaxCompletionTokens = sdk.Int(n)
		} else {
			p.MaxTokens = sdk.Int(n)
		}
	}
	if t := m.opts.Temperature; t != nil {
		p.Temperature = sdk.Float(*t)
	}
	if t := m.opts.TopP; t != nil {
		p.TopP = sdk.Float(*t)
	}
	if f := m.opts.FrequencyPenalty; f != nil {
		p.FrequencyPenalty = sdk.Float(*f)
	}
	if f := m.opts.PresencePenalty; f != nil {
		p.PresencePenalty = sdk.Float(*f)
	}
	if seed := m.opts.Seed; seed != nil {
		p.Seed = sdk.Int(*seed)
	}
	p.Stop.OfStringArray = m.opts.StopSequences
	if k := m.opts.TopK; k != nil {
		p.SetExtraFields(map[string]any{"top_k": *k})
	}
	p.ReasoningEffort = shared.ReasoningEffort(m.opts.Effort)
	if req.System != "" {
		p.Messages = append(p.Messages, sdk.SystemMessage(req.System))
	}
	for _, msg := range req.Messages {
		p.Messages = append(p.Messages, message(msg))
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	return p
}

func message(m model.Message) sdk.ChatCompletionMessageParamUnion {
	switch m.Role {
	case model.RoleAssistant:
		return assistantMessage(m)
	case model.RoleTool:
		return sdk.ToolMessage(m.Content, m.ToolCallID)
	default:
		if len(m.Files) == 0 {
			return sdk.UserMessage(m.Content)
		}
		return sdk.UserMessage(contentParts(m))
	}
}

// assistantMessage leaves reasoning, sources and files out: the API has no
// place for them.
func assistantMessage(m model.Message) sdk.ChatCompletionMessageParamUnion {
	var p sdk.ChatCompletionAssistantMessageParam
	for _, part := range m.Parts {
		if c := part.ToolCall; c != nil {
			p.ToolCalls = append(p.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
					ID: c.ID,
					Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name:      c.Name,
						Arguments: provider.Arguments(*c),
					},
				},
			})
		}
	}
	// Content may be missing beside tool calls only; empty text is refused by
	// some servers there.
	if text := m.Text(); text != "" || len(p.ToolCalls) == 0 {
		p.Content.OfString = sdk.String(text)
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &p}
}

func contentParts(m model.Message) []sdk.ChatCompletionContentPartUnionParam {
	var parts []sdk.ChatCompletionContentPartUnionParam
	if m.Content != "" {
		parts = append(parts, sdk.TextContentPart(m.Content))
	}
	for _, f := range m.Files {
		if strings.HasPrefix(f.MediaType, "image/") {
			parts = append(parts, sdk.ImageContentPart(sdk.ChatCompletionContentPartImageImageURLParam{URL: f.Data}))
			continue
		}
		name := f.Filename
		if name == "" {
			name = "file" // data without a name is refused
		}
		parts = append(parts, sdk.FileContentPart(sdk.ChatCompletionContentPartFileFileParam{
			FileData: sdk.String(f.Data),
			Filename: sdk.String(name),
		}))
	}
	return parts
}

func tool(t model.ToolSpec) sdk.ChatCompletionToolUnionParam {
	f := shared.FunctionDefinitionParam{Name: t.Name}
	if t.Description != "" {
		f.Description = param.NewOpt(t.Description)
	}
	if t.Strict {
		f.Strict = sdk.Bool(true)
	}
	if len(t.InputSchema) > 0 {
		// As an extra field the schema keeps its bytes: models read a schema's
		// properties in their order.
		f.SetExtraFields(map[string]any{"parameters": t.InputSchema})
	}
	return sdk.ChatCompletionFunctionTool(f)
}
