package openairesponses_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
)

func TestSamplingOptions(t *testing.T) {
	topP := 0.9
	got := sent(t, "gpt-4.1", openairesponses.Options{TopP: &topP}, model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Content: "go"}},
		Tools:    []model.ToolSpec{{Name: "f", InputSchema: raw(`{"type":"object"}`), Strict: true}},
	})
	var body map[string]any
	require.NoError(t, json.Unmarshal(got.Body, &body))
	require.Equal(t, 0.9, body["top_p"])
	require.Equal(t, []any{map[string]any{
		"type": "function", "name": "f", "parameters": map[string]any{"type": "object"}, "strict": true,
	}}, body["tools"])
}
