package anthropic_test

import (
	"encoding/json"
	"strings"
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
		text    string
		reasons string // its beginning
		signed  string // the signature's beginning
		calls   []modeltest.Call
	}{
		{
			fixture: "anthropic-text",
			answer: model.Answer{
				Model: "claude-sonnet-4-5-20250929", StopReason: fact.StopEndTurn,
				Usage: fact.TokenUsage{Prompt: 12, Completion: 30, Total: 42},
			},
			text: "Hello! I'm doing well, thank you for asking. How are you doing today? Is there anything I can help you with?",
		},
		{
			fixture: "anthropic-clear-thinking.1",
			answer: model.Answer{
				Model: "claude-sonnet-4-5-20250929", StopReason: fact.StopEndTurn,
				Usage: fact.TokenUsage{Prompt: 69, Completion: 53, Total: 122},
			},
			text: "925 ÷ 5 = 185", reasons: "The previous result was 925. Now I need", signed: "EvQBCkYICxgCKkAx",
		},
		{
			fixture: "anthropic-json-other-tool.1",
			answer: model.Answer{
				Model: "claude-haiku-4-5-20251001", StopReason: fact.StopToolUse,
				Usage: fact.TokenUsage{Prompt: 843, Completion: 28, Total: 871},
			},
			calls: modeltest.Calls("toolu_019Zvehfe1XQWweT1pm7okyt", "weather", `{"location": "San Francisco"}`),
		},
		{
			fixture: "anthropic-tool-no-args",
			answer: model.Answer{
				Model: "claude-sonnet-4-5-20250929", StopReason: fact.StopToolUse,
				Usage: fact.TokenUsage{Prompt: 565, Completion: 48, Total: 613},
			},
			text:  "I'll update the issue list for you.",
			calls: modeltest.Calls("toolu_01QE1WLsSVp5hy5Q3GmGTmjP", "updateIssueList", ""),
		},
		{
			fixture: "anthropic-refusal",
			answer: model.Answer{
				Model: "claude-fable-5", StopReason: fact.StopContentFilter,
				Usage: fact.TokenUsage{Prompt: 18, Completion: 5, Total: 23},
			},
		},
	} {
		t.Run(c.fixture, func(t *testing.T) {
			s := modeltest.Serve(t, modeltest.Fixture(t, c.fixture))
			got, said := modeltest.Ask(t, modelOn(s), modeltest.Hello())
			require.Equal(t, c.answer, got)
			require.Equal(t, c.text, said.Text)
			require.True(t, strings.HasPrefix(said.Reasoning, c.reasons), said.Reasoning)
			require.Equal(t, c.reasons != "", said.Reasoning != "")
			require.Equal(t, c.calls, said.Calls)
			if c.signed == "" {
				require.Empty(t, said.Data)
				return
			}
			var data struct{ Provider, Signature string }
			require.Len(t, said.Data, 1)
			require.NoError(t, json.Unmarshal(said.Data[0], &data))
			require.Equal(t, "anthropic", data.Provider)
			require.True(t, strings.HasPrefix(data.Signature, c.signed))
			require.True(t, strings.HasSuffix(data.Signature, "7BgB"), "whole")
		})
	}
}
