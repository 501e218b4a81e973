package config

import (
	"slices"
	"strings"
)

func (k *checker) checkModel(m Model, path string) {
	scripted := m.Provider == ProviderScripted
	switch m.Provider {
	case "":
		if k.config.isSet(path + ".provider") {
			path += ".provider"
		}
		k.needed(false, path, "needs a provider")
		return
	case ProviderAnthropic, ProviderOpenAI, ProviderOpenAIResponses, ProviderScripted:
	default:
		k.require(false, path+".provider", "must be anthropic, openai, openai-responses or scripted")
	}
	k.needed(scripted || m.Name != "", path+".name", "must not be empty")
	k.require(m.BaseURL == "" || isHTTPURL(m.BaseURL), path+".baseURL", "must be an absolute http or https URL")
	k.require(m.MaxOutputTokens >= 0, path+".maxOutputTokens", "must not be negative")
	k.require(m.Temperature == nil || *m.Temperature >= 0, path+".temperature", "must not be negative")
	k.require(m.MaxRetries >= 0, path+".maxRetries", "must not be negative")
	if m.Provider == ProviderAnthropic {
		k.require(m.Temperature == nil || *m.Temperature <= 1, path+".temperature", "must be at most 1 with provider anthropic")
		k.require(!strings.HasSuffix(strings.TrimRight(m.BaseURL, "/"), "/v1"), path+".baseURL", "must not end in /v1 with provider anthropic")
	}
	k.checkReasoning(m, path)
	k.checkScript(m, scripted, path)
}

// minBudget is the least that anthropic takes.
const minBudget = 1024

func (k *checker) checkReasoning(m Model, path string) {
	r := m.Reasoning
	path += ".reasoning"
	k.require(r.Effort == "" || m.Provider != ProviderScripted, path+".effort", "is not for provider scripted")
	if r.Summary != "" {
		k.require(m.Provider == ProviderOpenAIResponses, path+".summary", "is for provider openai-responses only")
		k.require(slices.Contains([]string{"auto", "concise", "detailed"}, r.Summary), path+".summary", "must be auto, concise or detailed")
	}
	if r.BudgetTokens != 0 {
		k.require(m.Provider == ProviderAnthropic, path+".budgetTokens", "is for provider anthropic only")
		k.require(r.BudgetTokens >= minBudget, path+".budgetTokens", "must be at least 1024")
		k.require(m.MaxOutputTokens <= 0 || r.BudgetTokens < m.MaxOutputTokens, path+".budgetTokens", "must be less than maxOutputTokens")
	}
}

func (k *checker) checkScript(m Model, scripted bool, path string) {
	k.needed(!scripted || len(m.Script) > 0, path+".script", "must not be empty with provider scripted")
	k.require(scripted || len(m.Script) == 0, path+".script", "is for provider scripted only")
	k.require(scripted || m.ScriptDelay == 0, path+".scriptDelay", "is for provider scripted only")
	k.require(m.ScriptDelay >= 0, path+".scriptDelay", "must not be negative")
	for i, turn := range m.Script {
		for j, call := range turn.ToolCalls {
			at := index(index(path+".script", i)+".toolCalls", j)
			k.needed(call.Name != "", at+".name", "must not be empty")
			k.require(isObject(call.Arguments), at+".arguments", "must be a mapping")
		}
	}
}
