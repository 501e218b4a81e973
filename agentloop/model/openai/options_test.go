package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
)

func TestSamplingOptions(t *testing.T) {
	s := modeltest.Serve(t, deltas(`"stop"`))
	opts := options(s)
	topP, frequency, presence, topK, seed := 0.9, -0.5, 1.5, int64(40), int64(0)
	opts.TopP, opts.FrequencyPenalty, opts.PresencePenalty, opts.TopK, opts.Seed = &topP, &frequency, &presence, &topK, &seed
	opts.StopSequences = []string{"END"}
	got := sent(t, s, opts, model.Request{
		Messages: []model.Message{{Role: model.RoleUser, Content: "go"}},
		Tools:    []model.ToolSpec{{Name: "f", InputSchema: json.RawMessage(`{"type":"object"}`), Strict: true}, {Name: "g"}},
	})
	require.JSONEq(t, `{
		"model": "some-model", "stream": true, "stream_options": {"include_usage": true},
		"top_p": 0.9, "top_k": 40, "frequency_penalty": -0.5, "presence_penalty": 1.5, "seed": 0, "stop": ["END"],
		"messages": [{"role": "user", "content": "go"}],
		"tools": [
			{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}, "strict": true}},
			{"type": "function", "function": {"name": "g"}}
		]
	}`, string(got.Body))
}
