package agentconfig

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// Every provider's model is asked over the provider's protocol, with the key
// and the settings that the file has.
func TestModelsOfProviders(t *testing.T) {
	temperature, topP, penalty := 0.5, 0.9, -1.0
	topK, seed := 40, 7
	for provider, want := range map[config.Provider]struct{ root, path, header, body string }{
		config.ProviderAnthropic: {
			"", "/v1/messages", "X-Api-Key",
			`{"model":"m","max_tokens":4000,"temperature":0.5,"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"high"},
			"top_p":0.9,"top_k":40,"stop_sequences":["END"],"service_tier":"auto","system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`,
		},
		config.ProviderOpenAI: {
			"/v1", "/v1/chat/completions", "Authorization",
			`{"model":"m","max_tokens":4000,"temperature":0.5,"reasoning_effort":"high",
			"top_p":0.9,"top_k":40,"frequency_penalty":-1,"presence_penalty":-1,"seed":7,"stop":["END"],"service_tier":"auto"}`,
		},
		config.ProviderOpenAIResponses: {
			"/v1", "/v1/responses", "Authorization",
			`{"model":"m","max_output_tokens":4000,"temperature":0.5,"reasoning":{"effort":"high","summary":"auto"},"top_p":0.9,"service_tier":"auto"}`,
		},
	} {
		s := modeltest.Serve(t, modeltest.Failure(401, `{"error":{"message":"no"}}`))
		m, err := Model(config.Model{
			Provider: provider, Name: "m", APIKey: config.NewSecret("secret"), BaseURL: s.URL + want.root,
			MaxOutputTokens: 4000, Temperature: &temperature,
			Reasoning: config.Reasoning{Effort: "high", Summary: "auto", BudgetTokens: 2000},
			TopP:      &topP, TopK: &topK, FrequencyPenalty: &penalty, PresencePenalty: &penalty, Seed: &seed,
			StopSequences: []string{"END"}, Cache: time.Hour, Headers: map[string]config.Secret{"X-Gateway": config.NewSecret("blue")},
			ProviderOptions: json.RawMessage(`{"service_tier":"auto"}`),
		})
		require.NoError(t, err)
		hello := modeltest.Hello()
		hello.System = "be brief"
		e, _ := modeltest.AskFor(t, m, hello)
		require.Equal(t, model.CodeAuthFailed, e.Code)
		got := s.Requests()[0]
		require.Equal(t, want.path, got.Path)
		require.Contains(t, got.Header.Get(want.header), "secret")
		require.Equal(t, "blue", got.Header.Get("X-Gateway"))
		var body, expected map[string]any
		require.NoError(t, json.Unmarshal(got.Body, &body))
		require.NoError(t, json.Unmarshal([]byte(want.body), &expected))
		for key, value := range expected {
			require.Equal(t, value, body[key], "%s of %s", key, provider)
		}
	}
	_, err := Model(config.Model{Provider: "acme"})
	require.Error(t, err)
}
