package openairesponses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/eventlog/fact"
)

func TestRecordedConversation(t *testing.T) {
	streams := modeltest.Fixture(t, "openai-reasoning-encrypted-content.1").Split("response.created")
	require.Len(t, streams, 4)
	for i, want := range []struct {
		text  string
		calls []modeltest.Call
		stop  fact.StopReason
	}{
		{calls: modeltest.Calls("call_AB6AaRZ1FYZB2RwS6A5vbdqn", "calculator", `{"a":12,"b":7,"op":"add"}`), stop: fact.StopToolUse},
		{calls: modeltest.Calls("call_Q6pW65MUgW9vF59BmItYGos3", "calculator", `{"a":19,"b":3,"op":"multiply"}`), stop: fact.StopToolUse},
		{calls: modeltest.Calls("call_Zl5vIMnD7dVAjgU6FkhmiCZh", "calculator", `{"a":57,"b":10,"op":"multiply"}`), stop: fact.StopToolUse},
		{text: "The final result is **570**.", stop: fact.StopEndTurn},
	} {
		answer, got := modeltest.Ask(t, modelOn(modeltest.Serve(t, streams[i])), modeltest.Hello())
		require.Equal(t, "gpt-5.1-codex-max", answer.Model)
		require.Equal(t, want.stop, answer.StopReason)
		require.Equal(t, want.text, got.Text)
		require.Equal(t, want.calls, got.Calls)
		require.Positive(t, answer.Usage.Prompt)
		require.Equal(t, answer.Usage.Prompt+answer.Usage.Completion, answer.Usage.Total)
		if i > 0 {
			require.Empty(t, got.Reasoning)
			require.Empty(t, got.Data)
			continue
		}
		require.Equal(t, "**Calculating step-by-step using calculator**\n\nI'll compute 12 plus 7, then multiply the result by 3, "+
			"and finally multiply that by 10, reporting the final product.", got.Reasoning)
		require.Len(t, got.Data, 1)
		var data struct{ Provider, ItemID, Encrypted string }
		require.NoError(t, json.Unmarshal(got.Data[0], &data))
		require.Equal(t, "openai-responses", data.Provider)
		require.Equal(t, "rs_01830d662ab3856501693c321405c88190be3ab04d5782d5f9", data.ItemID)
		require.True(t, strings.HasPrefix(data.Encrypted, "gAAAAABpPDIVOKrsHNZ0"), "that of the whole item, not of its beginning")
	}
}

func TestRecordedFailure(t *testing.T) {
	s := modeltest.Serve(t, modeltest.Fixture(t, "openai-error.1"))
	e, got := modeltest.AskFor(t, modelOn(s), modeltest.Hello())
	require.Equal(t, model.Error{
		Code: model.CodeRateLimited,
		Message: "You exceeded your current quota, please check your plan and billing details. " +
			"For more information on this error, read the docs: [URL]",
	}, s.Words(t, e))
	require.Empty(t, got.Events)
}
