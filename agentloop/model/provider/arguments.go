package provider

import (
	"encoding/json"
	"strings"

	"github.com/helixd/helixd/eventlog/fact"
)

// Arguments is what the model wrote as a call's arguments, JSON or not. Where
// it wrote nothing it is {}: servers that parse past arguments fail on an empty
// text.
func Arguments(c fact.ToolCall) string {
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
