package openai

import (
	"encoding/json"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
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

// assistantMessage leaves reasoning out: the API has no place for it.
func assistantMessage(m model.Message) sdk.ChatCompletionMessageParamUnion {
	var p sdk.ChatCompletionAssistantMessageParam
	// Content may be missing beside tool calls only; empty text is refused by
	// some servers there.
	if m.Content != "" || len(m.ToolCalls) == 0 {
		p.Content.OfString = sdk.String(m.Content)
	}
	for _, c := range m.ToolCalls {
		p.ToolCalls = append(p.ToolCalls, sdk.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &sdk.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID,
				Function: sdk.ChatCompletionMessageFunctionToolCallFunctionParam{
					Name:      c.Name,
					Arguments: arguments(c),
				},
			},
		})
	}
	return sdk.ChatCompletionMessageParamUnion{OfAssistant: &p}
}

// arguments is what the model wrote. A call whose model wrote nothing gets {}:
// servers that parse past arguments fail on an empty text.
func arguments(c eventlog.ToolCall) string {
	text := string(c.Arguments)
	var inner string
	if json.Unmarshal(c.Arguments, &inner) == nil {
		text = inner
	}
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	return text
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
	if len(t.InputSchema) > 0 {
		// As an extra field the schema keeps its bytes: models read a schema's
		// properties in their order.
		f.SetExtraFields(map[string]any{"parameters": t.InputSchema})
	}
	return sdk.ChatCompletionFunctionTool(f)
}
