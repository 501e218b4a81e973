package mcptool

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// resultOf is a call's result, or the tool's error.
func resultOf(r *mcp.CallToolResult) (any, error) {
	text, onlyText := textOf(r.Content)
	if r.IsError {
		return nil, toolError(r, text)
	}
	switch {
	case r.StructuredContent != nil:
		if exact, ok := sameJSON(text, r.StructuredContent); ok {
			return exact, nil
		}
		return r.StructuredContent, nil
	case len(r.Content) == 0:
		return nil, nil
	case onlyText:
		return text, nil
	}
	return r.Content, nil
}

// textOf joins the text of a content list and reports whether it is all.
func textOf(content []mcp.Content) (text string, onlyText bool) {
	var lines []string
	for _, part := range content {
		if t, ok := part.(*mcp.TextContent); ok {
			lines = append(lines, t.Text)
		}
	}
	return strings.Join(lines, "\n"), len(lines) == len(content)
}

// toolError is what a tool says of its failure.
func toolError(r *mcp.CallToolResult, text string) error {
	if strings.TrimSpace(text) == "" {
		var raw []byte
		switch {
		case r.StructuredContent != nil:
			raw, _ = json.Marshal(r.StructuredContent)
		case len(r.Content) > 0:
			raw, _ = json.Marshal(r.Content)
		}
		text = string(raw)
	}
	if text == "" {
		text = "the tool failed"
	}
	return errors.New(cut(text))
}

// sameJSON returns text if it is value as JSON: the SDK decodes numbers to
// float64, the text still has their digits.
func sameJSON(text string, value any) (json.RawMessage, bool) {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil || !reflect.DeepEqual(v, value) {
		return nil, false
	}
	return json.RawMessage(text), true
}
