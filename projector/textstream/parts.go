package textstream

import (
	"encoding/json"

	"github.com/helixd/helixd/eventlog"
)

// The parts of the stream, one struct for each shape.
type (
	// bare is start, start-step or finish-step.
	bare struct {
		Type string `json:"type"`
	}

	blockStart struct {
		Type     string    `json:"type"`
		ID       string    `json:"id"`
		ToolName string    `json:"toolName,omitempty"` // tool-input-start
		Metadata *metadata `json:"metadata,omitempty"`
	}

	// textDelta is text-delta or reasoning-delta.
	textDelta struct {
		Type     string    `json:"type"`
		ID       string    `json:"id"`
		Text     string    `json:"text"`
		Metadata *metadata `json:"metadata,omitempty"`
	}

	inputDelta struct {
		Type     string    `json:"type"`
		ID       string    `json:"id"`
		Delta    string    `json:"delta"`
		Metadata *metadata `json:"metadata,omitempty"`
	}

	blockEnd struct {
		Type     string    `json:"type"`
		ID       string    `json:"id"`
		Metadata *metadata `json:"metadata,omitempty"`
	}

	toolCall struct {
		Type       string          `json:"type"`
		ToolCallID string          `json:"toolCallId"`
		ToolName   string          `json:"toolName"`
		Input      json.RawMessage `json:"input"`
		Metadata   *metadata       `json:"metadata,omitempty"`
	}

	toolResult struct {
		Type       string          `json:"type"`
		ToolCallID string          `json:"toolCallId"`
		ToolName   string          `json:"toolName"`
		Output     json.RawMessage `json:"output,omitempty"`
		Metadata   *metadata       `json:"metadata,omitempty"`
	}

	metadata struct {
		ParentToolUseID string `json:"parentToolUseId"`
	}

	failure struct {
		Type  string `json:"type"`
		Error string `json:"error"`
	}

	finish struct {
		Type         string                `json:"type"`
		FinishReason eventlog.FinishReason `json:"finishReason"`
		TotalUsage   totalUsage            `json:"totalUsage"`
		Metadata     finishMetadata        `json:"metadata"`
	}

	totalUsage struct {
		InputTokens  int64 `json:"inputTokens"`
		OutputTokens int64 `json:"outputTokens"`
		TotalTokens  int64 `json:"totalTokens"`
	}

	finishMetadata struct {
		Cost       *float64 `json:"cost,omitempty"`
		DurationMs int64    `json:"durationMs"`
	}
)

// encode returns a part as one line of JSON without HTML escapes, or nil of
// what is none.
func encode(part any) []byte {
	raw, _ := eventlog.Marshal(part)
	return raw
}
