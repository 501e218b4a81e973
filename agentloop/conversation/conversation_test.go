package conversation

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Providers refuse a call without a result, and a run may end before its calls.
func TestEachCallHasAResultBehindIt(t *testing.T) {
	parts := func(ids ...string) (parts []fact.TurnPart) {
		for _, id := range ids {
			parts = append(parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: "t"}})
		}
		return parts
	}
	result := func(id, failure string) projector.Message {
		return projector.Message{Role: projector.RoleTool, ToolCallID: id, ToolName: "t", Result: json.RawMessage(`1`), Error: failure}
	}
	answered := func(id, content string, failed bool) model.Message {
		return model.Message{Role: model.RoleTool, Content: content, ToolCallID: id, ToolName: "t", Failed: failed}
	}
	const cut = "Error: the run ended before the call did"
	require.Equal(t, []model.Message{
		{Role: model.RoleUser, Content: "go"},
		{Role: model.RoleAssistant, Parts: parts("a", "b", "c")},
		answered("b", "1", false),
		answered("a", cut, true),
		answered("c", cut, true),
		{Role: model.RoleUser, Content: "again"},
		{Role: model.RoleAssistant, Parts: parts("d")},
		answered("d", "Error: broke", true),
		{Role: model.RoleAssistant, Parts: parts("e")},
		answered("e", cut, true),
	}, ForModel([]projector.Message{
		{Role: projector.RoleUser, Content: "go"},
		{Role: projector.RoleAssistant, Parts: parts("a", "b", "c")},
		result("b", ""),
		{Role: projector.RoleUser, Content: "again"},
		{Role: projector.RoleAssistant, Parts: parts("d")},
		result("d", "broke"),
		{Role: projector.RoleAssistant, Parts: parts("e")},
	}))
	require.Empty(t, ForModel(nil))
}
