package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLoadMemory(t *testing.T) {
	c, err := loadText(t, `
memory:
  embedder: {provider: openai, name: m, apiKey: env:KEY, baseURL: "http://h/v1", dimensions: 512}
  executor: background
  maxConcurrency: 2
  processEvery: 1m
agents:
  a:
    model: &m {provider: openai, name: m}
    memory: {scope: user}
  b:
    model: *m
    memory: {scope: session, recall: 0, save: false, search: false}
  c:
    model: *m
    memory:
`, env{"KEY": "a-secret"})
	require.NoError(t, err)
	assert.Equal(t, Memory{
		Embedder: Embedder{Provider: EmbedderOpenAI, Name: "m", APIKey: NewSecret("a-secret"), BaseURL: "http://h/v1", Dimensions: 512},
		Executor: ExecutorBackground, MaxConcurrency: 2, ProcessEvery: time.Minute,
	}, c.Memory)
	assert.Equal(t, &AgentMemory{Scope: "user", Recall: defaultRecall, Save: true, Search: true}, c.Agents["a"].Memory)
	assert.Equal(t, &AgentMemory{Scope: "session"}, c.Agents["b"].Memory)
	assert.Nil(t, c.Agents["c"].Memory)
	assert.NotContains(t, c.String(), "a-secret")

	c, err = loadText(t, "memory: {processEvery: 0}\n", env{"HELIX_MEMORY_EMBEDDER_PROVIDER": "local"})
	require.NoError(t, err)
	assert.Equal(t, Memory{Embedder: Embedder{Provider: EmbedderLocal}, Executor: ExecutorInline, MaxConcurrency: defaultMaxConcurrency}, c.Memory)
}

func TestBadMemory(t *testing.T) {
	const off = "readModels: {enabled: false}\n"
	for _, tt := range []struct{ name, text, want string }{
		{"executor", "memory: {executor: later}\n", "helix.yaml:1: memory.executor: must be inline or background"},
		{"concurrency", "memory: {maxConcurrency: 0}\n", "helix.yaml:1: memory.maxConcurrency: must be at least 1"},
		{"every", "memory: {processEvery: -1m}\n", "helix.yaml:1: memory.processEvery: must not be negative"},
		{"provider", "memory: {embedder: {provider: cloud}}\n", "helix.yaml:1: memory.embedder.provider: must be local or openai"},
		{"no name", "memory: {embedder: {provider: openai}}\n", "helix.yaml:1: memory.embedder.name: must not be empty"},
		{"url", "memory: {embedder: {provider: openai, name: m, baseURL: 'h:1'}}\n", "helix.yaml:1: memory.embedder.baseURL: must be an absolute http or https URL"},
		{"what local has not", "memory:\n  embedder: {provider: local, name: m, apiKey: k, baseURL: 'http://h'}\n",
			"helix.yaml:2: memory.embedder.name: is for provider openai only\nhelix.yaml:2: memory.embedder.baseURL: is for provider openai only\n" +
				"helix.yaml:2: memory.embedder.apiKey: is for provider openai only"},
		{"dimensions", "memory: {embedder: {provider: local, dimensions: 8193}}\n", "helix.yaml:1: memory.embedder.dimensions: must be from 0 to 8192"},
		{"dimensions of nothing", "memory: {embedder: {dimensions: 3}}\n", "helix.yaml:1: memory.embedder.dimensions: needs a provider"},
		{"no read models", off + "memory: {embedder: {provider: local}}\n",
			"helix.yaml:2: memory: needs readModels.enabled: memories are found in the read models"},
		{"an agent's scope", agent("    memory: {recall: 3}\n"), "helix.yaml:4: agents.a.memory: needs a scope: user, agent or session"},
		{"an agent's bad scope", agent("    memory: {scope: team}\n"), "helix.yaml:4: agents.a.memory.scope: must be user, agent or session"},
		{"too many", agent("    memory: {scope: user, recall: 51}\n"), "helix.yaml:4: agents.a.memory.recall: must be from 0 to 50"},
		{"an agent's without read models", agent("    memory: {scope: user}\n") + off,
			"helix.yaml:4: agents.a.memory: needs readModels.enabled: memories are found in the read models"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.text, nil)
			assert.EqualError(t, err, tt.want)
		})
	}
}
