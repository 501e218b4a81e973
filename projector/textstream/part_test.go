package textstream_test

import (
	"encoding/json"
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/projector/uimessage"
)

// part is any part, as a client of the dialect reads it.
type part struct {
	Type         string          `json:"type"`
	ID           string          `json:"id"`
	Text         *string         `json:"text"`
	Delta        *string         `json:"delta"`
	ToolCallID   string          `json:"toolCallId"`
	ToolName     string          `json:"toolName"`
	Input        json.RawMessage `json:"input"`
	Output       json.RawMessage `json:"output"`
	Error        *string         `json:"error"`
	FinishReason string          `json:"finishReason"`
	TotalUsage   json.RawMessage `json:"totalUsage"`
	Metadata     struct {
		ParentToolUseID string   `json:"parentToolUseId"`
		DurationMs      *int64   `json:"durationMs"`
		Cost            *float64 `json:"cost"`
	} `json:"metadata"`
}

// partTypes are all that there are.
var partTypes = []string{
	"start", "start-step", "text-start", "text-delta", "text-end", "reasoning-start", "reasoning-delta", "reasoning-end",
	"tool-input-start", "tool-input-delta", "tool-input-end", "tool-call", "tool-result", "finish-step", "finish", "error",
}

// parse reads a frame strictly.
func parse(t require.TestingT, f uimessage.Frame) part {
	var p part
	require.NoError(t, json.Unmarshal(f, &p), "%s", f)
	require.NotContains(t, string(f), "\n", "one line")
	require.True(t, slices.Contains(partTypes, p.Type), "%s", f)
	return p
}
