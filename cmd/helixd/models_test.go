package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// Every provider's model is asked over the provider's protocol, with the key
// and the settings that the file has.
func TestModelsOfProviders(t *testing.T) {
	temperature := 0.5
	for provider, want := range map[config.Provider]struct{ root, path, header, body string }{
		config.ProviderAnthropic: {
			"", "/v1/messages", "X-Api-Key",
			`{"model":"m","max_tokens":4000,"temperature":0.5,"thinking":{"type":"enabled","budget_tokens":2000},"output_config":{"effort":"high"}}`,
		},
		config.ProviderOpenAI: {
			"/v1", "/v1/chat/completions", "Authorization",
			`{"model":"m","max_tokens":4000,"temperature":0.5,"reasoning_effort":"high"}`,
		},
		config.ProviderOpenAIResponses: {
			"/v1", "/v1/responses", "Authorization",
			`{"model":"m","max_output_tokens":4000,"temperature":0.5,"reasoning":{"effort":"high","summary":"auto"}}`,
		},
	} {
		s := modeltest.Serve(t, modeltest.Failure(401, `{"error":{"message":"no"}}`))
		m, err := modelOf(config.Model{
			Provider: provider, Name: "m", APIKey: config.NewSecret("secret"), BaseURL: s.URL + want.root,
			MaxOutputTokens: 4000, Temperature: &temperature,
			Reasoning: config.Reasoning{Effort: "high", Summary: "auto", BudgetTokens: 2000},
		})
		require.NoError(t, err)
		e, _ := modeltest.AskFor(t, m, modeltest.Hello())
		require.Equal(t, model.CodeAuthFailed, e.Code)
		got := s.Requests()[0]
		require.Equal(t, want.path, got.Path)
		require.Contains(t, got.Header.Get(want.header), "secret")
		var body, expected map[string]any
		require.NoError(t, json.Unmarshal(got.Body, &body))
		require.NoError(t, json.Unmarshal([]byte(want.body), &expected))
		for key, value := range expected {
			require.Equal(t, value, body[key], "%s of %s", key, provider)
		}
	}
	_, err := modelOf(config.Model{Provider: "acme"})
	require.Error(t, err)
}
