package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestSamplingOptions(t *testing.T) {
	topP, topK := 0.9, int64(40)
	got := sent(t, anthropic.Options{TopP: &topP, TopK: &topK, StopSequences: []string{"END", "\n\n"}}, model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Content: "go"}},
		Tools:    []model.ToolSpec{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`), Strict: true}, {Name: "g", InputSchema: json.RawMessage(`{"type":"object"}`)}},
	})
	require.JSONEq(t, `{
		"model": "some-model", "stream": true, "max_tokens": 8192, "top_p": 0.9, "top_k": 40, "stop_sequences": ["END", "\n\n"],
		"messages": [{"role": "user", "content": [{"type": "text", "text": "go"}]}],
		"tools": [{"name": "f", "input_schema": {"type": "object"}, "strict": true}, {"name": "g", "input_schema": {"type": "object"}}]
	}`, string(got.Body))
}

// The provider keeps the tools, the system prompt and the conversation, up to
// where this call ends and to where the one before it ended.
func TestPromptCaching(t *testing.T) {
	turns := func(n int) model.Request {
		req := model.Request{System: "be brief", Tools: []model.ToolSpec{{Name: "f"}, {Name: "g"}}}
		req.Messages = append(req.Messages, model.Message{Role: model.RoleUser, Content: "go"})
		for i := range n {
			id := fmt.Sprintf("toolu_%d", i)
			req.Messages = append(req.Messages,
				model.Message{Role: model.RoleAssistant, Parts: []fact.TurnPart{call(id, "f", `{}`), call(id+"b", "g", `{}`)}},
				model.Message{Role: model.RoleTool, Content: "1", ToolCallID: id, ToolName: "f"},
				model.Message{Role: model.RoleTool, Content: "2", ToolCallID: id + "b", ToolName: "g"})
		}
		return req
	}
	type block struct {
		Cache *struct {
			Type, TTL string
		} `json:"cache_control"`
	}
	for _, tc := range []struct {
		cache time.Duration
		turns int
		ttl   string
		marks string // of each tool, the system prompt, each block
	}{
		{0, 2, "", ".. . . .. .. .. .."},
		{anthropic.DefaultCache, 0, "5m", ".X X X"},
		{anthropic.DefaultCache, 1, "5m", ".X X X .. .X"},
		{anthropic.LongCache, 2, "1h", ".X X . .. .X .. .X"},
	} {
		got := sent(t, anthropic.Options{Cache: tc.cache}, turns(tc.turns))
		var body struct {
			Tools, System []block
			Messages      []struct{ Content []block }
		}
		require.NoError(t, json.Unmarshal(got.Body, &body))
		marks := ""
		add := func(blocks []block) {
			if marks != "" {
				marks += " "
			}
			for _, b := range blocks {
				if b.Cache == nil {
					marks += "."
					continue
				}
				marks += "X"
				require.Equal(t, "ephemeral", b.Cache.Type)
				require.Equal(t, tc.ttl, b.Cache.TTL)
			}
		}
		add(body.Tools)
		add(body.System)
		for _, m := range body.Messages {
			add(m.Content)
		}
		require.Equal(t, tc.marks, marks)
	}
	require.Panics(t, func() { anthropic.New("m", &anthropic.Options{Cache: time.Minute}) })
}
