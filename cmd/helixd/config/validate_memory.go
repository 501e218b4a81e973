package config

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

const needsReadModels = "needs readModels.enabled: memories are found in the read models"

func (k *checker) checkMemory() {
	m := k.config.Memory
	k.require(m.Executor == ExecutorInline || m.Executor == ExecutorBackground, "memory.executor", "must be inline or background")
	k.require(m.MaxConcurrency >= 1, "memory.maxConcurrency", "must be at least 1")
	k.require(m.ProcessEvery >= 0, "memory.processEvery", "must not be negative")
	e, path := m.Embedder, "memory.embedder"
	switch e.Provider {
	case "", EmbedderLocal:
		k.require(e.Name == "", path+".name", "is for provider openai only")
		k.require(e.BaseURL == "", path+".baseURL", "is for provider openai only")
		k.require(e.APIKey.Reveal() == "", path+".apiKey", "is for provider openai only")
	case EmbedderOpenAI:
		k.needed(e.Name != "", path+".name", "must not be empty")
		k.require(len(e.Name) <= maxEmbedderName, path+".name", fmt.Sprintf("must be at most %d bytes", maxEmbedderName))
		k.require(!strings.ContainsFunc(e.Name, unicode.IsControl), path+".name", "must not contain control characters")
		k.require(e.BaseURL == "" || isHTTPURL(e.BaseURL), path+".baseURL", "must be an absolute http or https URL")
	default:
		k.require(false, path+".provider", "must be local or openai")
	}
	k.require(e.Dimensions >= 0 && e.Dimensions <= fact.MaxDimensions, path+".dimensions", fmt.Sprintf("must be from 0 to %d", fact.MaxDimensions))
	k.require(e.Provider == "" || k.config.ReadModels.Enabled, "memory", needsReadModels)
	k.require(e.Dimensions == 0 || e.Provider != "", path+".dimensions", "needs a provider")
}

// maxEmbedderName bounds the name of a model, which is stored, with the dimensions, beside each
// vector.
const maxEmbedderName = 200

func (k *checker) checkAgentMemory(m *AgentMemory, path string) {
	if m == nil {
		return
	}
	switch eventlog.MemoryScopeKind(m.Scope) {
	case "":
		k.needed(false, path, "needs a scope: user, agent or session")
	case eventlog.MemoryOfUser, eventlog.MemoryOfAgent, eventlog.MemoryOfSession:
	default:
		k.require(false, path+".scope", "must be user, agent or session")
	}
	k.require(m.Recall >= 0 && m.Recall <= agentloop.MaxRecalled, path+".recall", fmt.Sprintf("must be from 0 to %d", agentloop.MaxRecalled))
	k.require(k.config.ReadModels.Enabled, path, needsReadModels)
}
