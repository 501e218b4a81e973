package readmodel

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/helixd/helixd/projector"
)

// Text is a piece of a message that is searched.
type Text struct {
	Kind       HitKind
	ToolName   string
	ToolCallID string
	Text       string // at most MaxTextBytes
}

// Texts returns the texts of a message that are searched. A message that only the model
// sees has none.
func Texts(m *projector.Message) []Text {
	if m.Hidden() {
		return nil
	}
	var all []Text
	add := func(t Text) {
		if t.Text = Cut(strings.ToValidUTF8(t.Text, "\ufffd"), MaxTextBytes); t.Text != "" {
			all = append(all, t)
		}
	}
	if m.Role == projector.RoleTool {
		add(Text{
			Kind: HitToolResult, ToolName: m.ToolName, ToolCallID: m.ToolCallID,
			Text: joined(m.ToolName, words(m.Result), m.Error),
		})
		return all
	}
	add(Text{Kind: HitMessage, Text: m.Content})
	for _, p := range m.Parts {
		if call := p.ToolCall; call != nil {
			add(Text{Kind: HitToolCall, ToolName: call.Name, ToolCallID: call.ID, Text: joined(call.Name, words(call.Arguments))})
		}
	}
	return all
}

func joined(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, " ")
}

// words returns JSON as text. A JSON string becomes its value, so that escapes don't hide
// words.
func words(raw json.RawMessage) string {
	var text strings.Builder
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	for text.Len() < MaxTextBytes {
		token, err := d.Token()
		if err != nil {
			break
		}
		word := ""
		switch token := token.(type) {
		case string:
			word = token
		case json.Number:
			word = token.String()
		case bool:
			word = map[bool]string{true: "true", false: "false"}[token]
		default:
			continue
		}
		if text.Len() > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(word)
	}
	return text.String()
}

// Cut shortens a text to n bytes, without splitting a character.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
