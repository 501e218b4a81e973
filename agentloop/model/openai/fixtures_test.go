package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestRecordedStreams(t *testing.T) {
	for _, c := range []struct {
		fixture string
		answer  model.Answer
		text    string // empty: what the fixture adds up to, which is not empty
		calls   []modeltest.Call
		reasons bool
	}{
		{
			fixture: "openai-text",
			answer: model.Answer{
				Model:      "gpt-4.1-nano-2025-04-14",
				StopReason: fact.StopEndTurn,
				Usage:      fact.TokenUsage{Prompt: 16, Completion: 300, Total: 316},
			},
		},
		{
			fixture: "openai-azure-model-router.1",
			answer: model.Answer{
				Model:      "gpt-5-nano-2025-08-07",
				StopReason: fact.StopEndTurn,
				Usage:      fact.TokenUsage{Prompt: 15, Completion: 78, Reasoning: 64, Total: 93},
			},
			text: "Capital of Denmark.",
		},
		{
			fixture: "xai-tool-call", // its 26 completion tokens are without the 227 of reasoning
			answer: model.Answer{
				Model:      "grok-3-mini",
				StopReason: fact.StopToolUse,
				Usage:      fact.TokenUsage{Prompt: 307, Completion: 253, Reasoning: 227, Cached: 306, Total: 560},
			},
			calls:   modeltest.Calls("call_79382389", "weather", `{"location":"San Francisco"}`),
			reasons: true,
		},
		{
			fixture: "deepseek-tool-call",
			answer: model.Answer{
				Model:      "deepseek-reasoner",
				StopReason: fact.StopToolUse,
				Usage:      fact.TokenUsage{Prompt: 339, Completion: 83, Reasoning: 39, Cached: 320, Total: 422},
			},
			calls:   modeltest.Calls("call_00_ioIn7yN9p1ZOMNpDLwd4MgAF", "weather", `{"location": "San Francisco"}`),
			reasons: true,
		},
		{
			fixture: "anthropic-fallback-tool-call", // the call's index is 1
			answer:  model.Answer{Model: "claude-haiku-4-5-20251001", StopReason: fact.StopToolUse},
			text:    "Reading it.",
			calls:   modeltest.Calls("toolu_sanitized", "read_file", `{"path": "a.txt"}`),
		},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			stream := modeltest.Fixture(t, c.fixture)
			text, reasoning := sum(t, stream)
			answer, got := ask(t, modeltest.Serve(t, stream))
			require.Equal(t, c.answer, answer)
			require.Equal(t, text, got.Text)
			require.Equal(t, reasoning, got.Reasoning)
			require.Equal(t, c.calls, got.Calls)
			require.Equal(t, c.reasons, got.Reasoning != "")
			if c.text != "" {
				require.Equal(t, c.text, got.Text)
			} else if c.calls == nil {
				require.NotEmpty(t, got.Text)
			}
		})
	}
}

// sum adds up a stream's text and reasoning without the adapter.
func sum(t *testing.T, s modeltest.Stream) (text, reasoning string) {
	for _, e := range s.Events {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string `json:"content"`
					Reasoning string `json:"reasoning_content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		require.NoError(t, json.Unmarshal([]byte(e.Data), &chunk))
		for _, choice := range chunk.Choices {
			text += choice.Delta.Content
			reasoning += choice.Delta.Reasoning
		}
	}
	return text, reasoning
}
