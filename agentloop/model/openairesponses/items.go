package openairesponses

import (
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog"
)

// items is a message as the API takes it: none, if there is nothing in it.
func (m *responder) items(msg model.Message) ([]responses.ResponseInputItemUnionParam, error) {
	switch msg.Role {
	case model.RoleAssistant:
		return m.answerItems(msg), nil
	case model.RoleTool:
		return []responses.ResponseInputItemUnionParam{{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
			CallID: sdk.String(provider.CallID(msg.ToolCallID)),
			Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: sdk.String(msg.Content)},
		}}}, nil
	}
	content, err := userContent(msg)
	if len(content) == 0 || err != nil {
		return nil, err
	}
	return []responses.ResponseInputItemUnionParam{
		responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRoleUser),
	}, nil
}

// answerItems is an answer as the API takes it back. Sources are not.
func (m *responder) answerItems(msg model.Message) []responses.ResponseInputItemUnionParam {
	var items []responses.ResponseInputItemUnionParam
	said := 0 // up to the last item that is not reasoning
	summary := []responses.ResponseReasoningItemSummaryParam{}
	for _, p := range msg.Parts {
		data := dataOf(p)
		if p.Reasoning != "" {
			summary = append(summary, responses.ResponseReasoningItemSummaryParam{Text: p.Reasoning})
		}
		if data.Encrypted != "" && reasons(m.name) {
			item := responses.ResponseInputItemParamOfReasoning(data.ItemID, summary)
			item.OfReasoning.EncryptedContent = sdk.String(data.Encrypted)
			items = append(items, item)
		}
		if p.Reasoning == "" || data.Encrypted != "" {
			summary = []responses.ResponseReasoningItemSummaryParam{}
		}
		switch {
		case p.ToolCall != nil:
			items = append(items, responses.ResponseInputItemParamOfFunctionCall(
				provider.Arguments(*p.ToolCall), provider.CallID(p.ToolCall.ID), provider.CallName(p.ToolCall.Name)))
		case p.Text != "":
			item := responses.ResponseInputItemParamOfMessage(p.Text, responses.EasyInputMessageRoleAssistant)
			item.OfMessage.Phase = responses.EasyInputMessagePhase(data.Phase)
			items = append(items, item)
		case p.File != nil && data.ItemID != "":
			_, image, _ := strings.Cut(p.File.Data, ";base64,")
			items = append(items, responses.ResponseInputItemParamOfImageGenerationCall(data.ItemID, image, "completed"))
		default:
			continue
		}
		said = len(items)
	}
	// Reasoning that nothing came of, as in an answer that was cut off, is
	// refused.
	return items[:said]
}

func userContent(msg model.Message) (responses.ResponseInputMessageContentListParam, error) {
	var content responses.ResponseInputMessageContentListParam
	if msg.Content != "" {
		content = append(content, responses.ResponseInputContentUnionParam{
			OfInputText: &responses.ResponseInputTextParam{Text: msg.Content},
		})
	}
	for _, f := range msg.Files {
		part, err := fileContent(f)
		if err != nil {
			return nil, err
		}
		content = append(content, part)
	}
	return content, nil
}

func fileContent(f eventlog.MessageFile) (responses.ResponseInputContentUnionParam, error) {
	file, err := provider.NewFile(f)
	if err != nil {
		return responses.ResponseInputContentUnionParam{}, err
	}
	if file.IsImage() {
		url := file.URL
		if url == "" {
			url = file.DataURL()
		}
		return responses.ResponseInputContentUnionParam{OfInputImage: &responses.ResponseInputImageParam{
			ImageURL: sdk.String(url), Detail: responses.ResponseInputImageDetailAuto,
		}}, nil
	}
	var p responses.ResponseInputFileParam
	if file.URL != "" {
		p.FileURL = sdk.String(file.URL)
	} else {
		p.FileData = sdk.String(file.DataURL())
		p.Filename = sdk.String(file.Name)
		if file.Name == "" {
			p.Filename = sdk.String("file") // data without a name is refused
		}
	}
	return responses.ResponseInputContentUnionParam{OfInputFile: &p}, nil
}
