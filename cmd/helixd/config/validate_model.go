package config

import (
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop/model/anthropic"
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
	k.checkSampling(m, path)
	k.checkReasoning(m, path)
	k.checkCall(m, path)
	k.checkScript(m, scripted, path)
}

// checkSampling refuses what a provider has no setting for, too.
func (k *checker) checkSampling(m Model, path string) {
	key := func(name string, set, fits bool, rule string, providers ...Provider) {
		if !set {
			return
		}
		path := path + "." + name
		if k.onlyFor(m, path, providers...) {
			k.require(fits, path, rule)
		}
	}
	within := func(v *float64) bool { return v == nil || *v >= -2 && *v <= 2 }
	key("topP", m.TopP != nil, m.TopP == nil || *m.TopP > 0 && *m.TopP <= 1, "must be greater than 0 and at most 1",
		ProviderAnthropic, ProviderOpenAI, ProviderOpenAIResponses)
	key("topK", m.TopK != nil, m.TopK == nil || *m.TopK >= 1, "must be at least 1", ProviderAnthropic, ProviderOpenAI)
	if m.TopK != nil && m.Provider == ProviderOpenAI {
		k.require(m.BaseURL != "", path+".topK", "is for compatible servers with a baseURL: OpenAI has no such setting")
	}
	key("frequencyPenalty", m.FrequencyPenalty != nil, within(m.FrequencyPenalty), "must be from -2 to 2", ProviderOpenAI)
	key("presencePenalty", m.PresencePenalty != nil, within(m.PresencePenalty), "must be from -2 to 2", ProviderOpenAI)
	key("seed", m.Seed != nil, true, "", ProviderOpenAI)
	if len(m.StopSequences) > 0 && k.onlyFor(m, path+".stopSequences", ProviderAnthropic, ProviderOpenAI) {
		for i, text := range m.StopSequences {
			blank := strings.TrimSpace(text) == "" && m.Provider == ProviderAnthropic
			k.require(text != "" && !blank, index(path+".stopSequences", i), "must not be empty")
		}
		k.require(m.Provider != ProviderOpenAI || m.BaseURL != "" || len(m.StopSequences) <= maxStops, path+".stopSequences", "OpenAI takes at most 4")
	}
}

// maxStops is how many stop sequences OpenAI takes.
const maxStops = 4

// checkCall looks at what is sent along with each call.
func (k *checker) checkCall(m Model, path string) {
	called := []Provider{ProviderAnthropic, ProviderOpenAI, ProviderOpenAIResponses}
	k.require(m.IdleTimeout >= 0, path+".idleTimeout", "must not be negative")
	if len(m.Headers) > 0 && k.onlyFor(m, path+".headers", called...) {
		k.checkHeaders(m.Headers, path+".headers")
	}
	if m.ProviderOptions != nil && k.onlyFor(m, path+".providerOptions", called...) {
		options, ok := m.Options()
		k.require(ok, path+".providerOptions", "must be a mapping")
		if err := options.Check(); err != nil {
			k.require(false, path+".providerOptions", err.Error())
		}
	}
	if m.Cache != 0 && k.onlyFor(m, path+".cache", ProviderAnthropic) {
		k.require(m.Cache == anthropic.DefaultCache || m.Cache == anthropic.LongCache, path+".cache", "must be 5m or 1h")
	}
	if m.StrictOutput {
		k.onlyFor(m, path+".strictOutput", called...)
	}
}

// onlyFor refuses a key that the model's provider has no setting for.
func (k *checker) onlyFor(m Model, path string, providers ...Provider) bool {
	names := make([]string, len(providers))
	for i, p := range providers {
		names[i] = string(p)
	}
	ok := slices.Contains(providers, m.Provider)
	k.require(ok, path, "is for provider "+strings.Join(names, ", ")+" only")
	return ok
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
