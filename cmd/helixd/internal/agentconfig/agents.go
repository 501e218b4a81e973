package agentconfig

import (
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// Agents makes the configured agents.
func Agents(c *config.Config) ([]agentloop.Agent, error) {
	agents := c.Definitions()
	for i, a := range agents {
		m, err := Model(c.Agents[a.Name].Model)
		if err != nil {
			return nil, fmt.Errorf("agents.%s.model: %w", a.Name, err)
		}
		agents[i].Model = m
	}
	return agents, nil
}

// Model makes a configured model.
func Model(m config.Model) (model.Model, error) {
	options, _ := m.Options()
	switch m.Provider {
	case config.ProviderAnthropic:
		return anthropic.New(m.Name, &anthropic.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature,
			TopP: m.TopP, TopK: wide(m.TopK), StopSequences: m.StopSequences, Cache: m.Cache,
			Effort: m.Reasoning.Effort, ThinkingTokens: int64(m.Reasoning.BudgetTokens),
			Headers: config.Revealed(m.Headers), ProviderOptions: options, IdleTimeout: m.IdleTimeout,
		}), nil
	case config.ProviderOpenAI:
		return openai.New(m.Name, &openai.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature,
			TopP: m.TopP, TopK: wide(m.TopK), FrequencyPenalty: m.FrequencyPenalty, PresencePenalty: m.PresencePenalty,
			Seed: wide(m.Seed), StopSequences: m.StopSequences, Effort: m.Reasoning.Effort,
			Headers: config.Revealed(m.Headers), ProviderOptions: options, IdleTimeout: m.IdleTimeout,
		}), nil
	case config.ProviderOpenAIResponses:
		return openairesponses.New(m.Name, &openairesponses.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature, TopP: m.TopP,
			Effort: m.Reasoning.Effort, Summary: m.Reasoning.Summary,
			Headers: config.Revealed(m.Headers), ProviderOptions: options, IdleTimeout: m.IdleTimeout,
		}), nil
	case config.ProviderScripted:
		return scripted.New(Turns(m.Script), &scripted.Options{Name: m.Name, Delay: m.ScriptDelay}), nil
	}
	return nil, fmt.Errorf("provider %s is not supported by this version", m.Provider)
}

// Turns are the answers of a scripted model.
func Turns(script []config.Turn) []scripted.Turn {
	turns := make([]scripted.Turn, len(script))
	for i, t := range script {
		turns[i] = scripted.Turn{Reasoning: t.Reasoning, Text: t.Text}
		for _, c := range t.ToolCalls {
			turns[i].ToolCalls = append(turns[i].ToolCalls, scripted.Call(c))
		}
	}
	return turns
}

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
