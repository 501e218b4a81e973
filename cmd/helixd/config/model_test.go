package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModels(t *testing.T) {
	c, err := loadText(t, `
agents:
  a:
    model: {provider: anthropic, name: m, apiKey: env:KEY, baseURL: "https://h/proxy", maxOutputTokens: 4000, temperature: 1, reasoning: {effort: high, budgetTokens: 2000}}
  b:
    model: {provider: openai-responses, name: m, baseURL: "https://h/v1", temperature: 2, reasoning: {effort: low, summary: auto}}
  c:
    model: {provider: openai, name: m, reasoning: {effort: minimal}}
`, env{"KEY": "sk-ant"})
	require.NoError(t, err)
	a, b := c.Agents["a"].Model, c.Agents["b"].Model
	assert.Equal(t, ProviderAnthropic, a.Provider)
	assert.Equal(t, "sk-ant", a.APIKey.Reveal())
	assert.Equal(t, Reasoning{Effort: "high", BudgetTokens: 2000}, a.Reasoning)
	assert.Equal(t, ProviderOpenAIResponses, b.Provider)
	assert.Equal(t, Reasoning{Effort: "low", Summary: "auto"}, b.Reasoning)
	assert.Equal(t, "minimal", c.Agents["c"].Model.Reasoning.Effort)
}
