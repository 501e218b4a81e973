package openairesponses

import (
	"cmp"
	"strings"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/provider"
	"github.com/helixd/helixd/eventlog/fact"
)

// The items of a request's input.
type (
	messageItem struct {
		Role    string `json:"role"`
		Content any    `json:"content"` // a text, or a list of contentPart
		Phase   string `json:"phase,omitempty"`
	}
	reasoningItem struct {
		Type             string        `json:"type"`
		ID               string        `json:"id"`
		Summary          []summaryPart `json:"summary"`
		EncryptedContent string        `json:"encrypted_content"`
	}
	summaryPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	callItem struct {
		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output string `json:"output"`
	}
	imageItem struct {
		Type   string `json:"type"`
		ID     string `json:"id"`
		Result string `json:"result"`
		Status string `json:"status"`
	}
	contentPart struct {
		Type     string `json:"type"`
		Text     string `json:"text,omitempty"`
		Detail   string `json:"detail,omitempty"`
		ImageURL string `json:"image_url,omitempty"`
		FileURL  string `json:"file_url,omitempty"`
		FileData string `json:"file_data,omitempty"`
		Filename string `json:"filename,omitempty"`
	}
)

// items is a message as the API takes it: none, if there is nothing in it.
func (m *responder) items(msg model.Message) ([]any, error) {
	switch msg.Role {
	case model.RoleAssistant:
		return m.answerItems(msg), nil
	case model.RoleTool:
		return []any{resultItem{Type: "function_call_output", CallID: provider.CallID(msg.ToolCallID), Output: msg.Content}}, nil
	}
	content, err := userContent(msg)
	if len(content) == 0 || err != nil {
		return nil, err
	}
	return []any{messageItem{Role: "user", Content: content}}, nil
}

// answerItems is an answer as the API takes it back. Sources are not.
func (m *responder) answerItems(msg model.Message) []any {
	var items []any
	said := 0 // up to the last item that is not reasoning
	summary := []summaryPart{}
	for _, p := range msg.Parts {
		data := dataOf(p)
		if p.Reasoning != "" {
			summary = append(summary, summaryPart{Type: "summary_text", Text: p.Reasoning})
		}
		if data.Encrypted != "" && reasons(m.name) {
			items = append(items, reasoningItem{Type: "reasoning", ID: data.ItemID, Summary: summary, EncryptedContent: data.Encrypted})
		}
		if p.Reasoning == "" || data.Encrypted != "" {
			summary = []summaryPart{}
		}
		switch {
		case p.ToolCall != nil:
			items = append(items, callItem{
				Type: "function_call", CallID: provider.CallID(p.ToolCall.ID), Name: provider.CallName(p.ToolCall.Name),
				Arguments: provider.Arguments(*p.ToolCall),
			})
		case p.Text != "":
			items = append(items, messageItem{Role: "assistant", Content: p.Text, Phase: data.Phase})
		case p.File != nil && data.ItemID != "":
			_, image, _ := strings.Cut(p.File.Data, ";base64,")
			items = append(items, imageItem{Type: "image_generation_call", ID: data.ItemID, Result: image, Status: "completed"})
		default:
			continue
		}
		said = len(items)
	}
	// Reasoning that nothing came of, as in an answer that was cut off, is
	// refused.
	return items[:said]
}

func userContent(msg model.Message) ([]contentPart, error) {
	var content []contentPart
	if msg.Content != "" {
		content = append(content, contentPart{Type: "input_text", Text: msg.Content})
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

func fileContent(f fact.MessageFile) (contentPart, error) {
	file, err := provider.NewFile(f)
	switch {
	case err != nil:
		return contentPart{}, err
	case file.IsImage() && file.URL != "":
		return contentPart{Type: "input_image", Detail: "auto", ImageURL: file.URL}, nil
	case file.IsImage():
		return contentPart{Type: "input_image", Detail: "auto", ImageURL: file.DataURL()}, nil
	case file.URL != "":
		return contentPart{Type: "input_file", FileURL: file.URL}, nil
	}
	return contentPart{Type: "input_file", FileData: file.DataURL(), Filename: cmp.Or(file.Name, "file")}, nil // data without a name is refused
}
