package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// answerBlocks is an answer as the API takes it back. Sources and files are
// not: only a user's message can hold some.
func answerBlocks(m model.Message) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	said := 0 // up to the last block that is not thinking
	for _, p := range m.Parts {
		data := dataOf(p)
		switch {
		case p.ToolCall != nil:
			blocks = append(blocks, callBlock(*p.ToolCall))
			said = len(blocks)
		case !blank(p.Text):
			blocks = append(blocks, sdk.NewTextBlock(p.Text))
			said = len(blocks)
		case data == nil:
		case data.Redacted != "":
			blocks = append(blocks, sdk.NewRedactedThinkingBlock(data.Redacted))
		case data.Signature != "":
			blocks = append(blocks, sdk.NewThinkingBlock(data.Signature, p.Reasoning))
		}
	}
	// An answer that was cut off in its thinking is refused.
	return blocks[:said]
}

func callBlock(c fact.ToolCall) sdk.ContentBlockParamUnion {
	input := any(json.RawMessage(c.Arguments))
	if !bytes.HasPrefix(bytes.TrimSpace(c.Arguments), []byte("{")) {
		// The API takes objects only; this was not even JSON, perhaps.
		input = map[string]any{}
		if text := provider.Arguments(c); text != "{}" {
			input = map[string]any{"input": text}
		}
	}
	return sdk.NewToolUseBlock(provider.CallID(c.ID), input, provider.CallName(c.Name))
}

func resultBlock(m model.Message) sdk.ContentBlockParamUnion {
	p := sdk.ToolResultBlockParam{ToolUseID: provider.CallID(m.ToolCallID)}
	if m.Failed {
		p.IsError = sdk.Bool(true)
	}
	if !blank(m.Content) {
		p.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: m.Content}}}
	}
	return sdk.ContentBlockParamUnion{OfToolResult: &p}
}

// userBlocks puts files before the text, which may be about them.
func userBlocks(m model.Message) ([]sdk.ContentBlockParamUnion, error) {
	var blocks []sdk.ContentBlockParamUnion
	for _, f := range m.Files {
		b, err := fileBlock(f)
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	if !blank(m.Content) {
		blocks = append(blocks, sdk.NewTextBlock(m.Content))
	}
	return blocks, nil
}

func fileBlock(f fact.MessageFile) (sdk.ContentBlockParamUnion, error) {
	file, err := provider.NewFile(f)
	if err != nil {
		return sdk.ContentBlockParamUnion{}, err
	}
	if file.IsImage() {
		if file.URL != "" {
			return sdk.NewImageBlock(sdk.URLImageSourceParam{URL: file.URL}), nil
		}
		return sdk.NewImageBlockBase64(file.MediaType, file.Base64), nil
	}
	var p sdk.DocumentBlockParam
	switch isPDF := file.MediaType == "application/pdf"; {
	case isPDF && file.URL != "":
		p.Source.OfURL = &sdk.URLPDFSourceParam{URL: file.URL}
	case isPDF:
		p.Source.OfBase64 = &sdk.Base64PDFSourceParam{Data: file.Base64}
	case strings.HasPrefix(file.MediaType, "text/") && file.URL == "":
		text, err := file.Text()
		if err != nil {
			return sdk.ContentBlockParamUnion{}, err
		}
		p.Source.OfText = &sdk.PlainTextSourceParam{Data: text}
	default:
		return sdk.ContentBlockParamUnion{}, file.Unusable("can't be sent to this provider")
	}
	if file.Name != "" {
		p.Title = sdk.String(file.Name)
	}
	return sdk.ContentBlockParamUnion{OfDocument: &p}, nil
}

// blank says whether the API would refuse the text as empty.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
