package anthropic

import (
	"encoding/json"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/helixd/helixd/agentloop/model"
)

func (m *messages) params(req model.Request) (sdk.MessageNewParams, error) {
	p := sdk.MessageNewParams{Model: sdk.Model(m.name), MaxTokens: m.MaxOutputTokens()}
	p.SetExtraFields(map[string]any{"stream": true})
	if t := m.opts.Temperature; t != nil {
		p.Temperature = sdk.Float(*t)
	}
	if t := m.opts.TopP; t != nil {
		p.TopP = sdk.Float(*t)
	}
	if k := m.opts.TopK; k != nil {
		p.TopK = sdk.Int(*k)
	}
	p.StopSequences = m.opts.StopSequences
	p.OutputConfig.Effort = sdk.OutputConfigEffort(m.opts.Effort)
	switch {
	case m.opts.ThinkingTokens > 0:
		p.Thinking = sdk.ThinkingConfigParamOfEnabled(m.opts.ThinkingTokens)
	case m.opts.Effort != "":
		p.Thinking.OfAdaptive = &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
	}
	if req.System != "" {
		p.System = []sdk.TextBlockParam{{Text: req.System}}
	}
	for _, t := range req.Tools {
		p.Tools = append(p.Tools, tool(t))
	}
	var err error
	p.Messages, err = conversation(req.Messages)
	if m.opts.Cache > 0 {
		cache(&p, m.opts.Cache)
	}
	return p, err
}

func tool(t model.ToolSpec) sdk.ToolUnionParam {
	p := sdk.ToolParam{Name: t.Name}
	if len(t.InputSchema) > 0 {
		// The schema keeps its bytes: models read a schema's properties in
		// their order.
		p.InputSchema = param.Override[sdk.ToolInputSchemaParam](json.RawMessage(t.InputSchema))
	} else {
		p.InputSchema.Properties = struct{}{}
	}
	if t.Description != "" {
		p.Description = sdk.String(t.Description)
	}
	if t.Strict {
		p.Strict = sdk.Bool(true)
	}
	return sdk.ToolUnionParam{OfTool: &p}
}

// conversation translates messages. What comes between two answers is one
// message: the results of all calls must come first in it, together.
func conversation(list []model.Message) ([]sdk.MessageParam, error) {
	var out []sdk.MessageParam
	for _, m := range list {
		role := sdk.MessageParamRoleUser
		var blocks []sdk.ContentBlockParamUnion
		var err error
		switch m.Role {
		case model.RoleAssistant:
			role, blocks = sdk.MessageParamRoleAssistant, answerBlocks(m)
		case model.RoleTool:
			blocks = []sdk.ContentBlockParamUnion{resultBlock(m)}
		default:
			blocks, err = userBlocks(m)
		}
		switch n := len(out); {
		case err != nil:
			return nil, err
		case len(blocks) == 0: // the API refuses empty messages
		case n > 0 && out[n-1].Role == role:
			out[n-1].Content = append(out[n-1].Content, blocks...)
		default:
			out = append(out, sdk.MessageParam{Role: role, Content: blocks})
		}
	}
	return out, nil
}
