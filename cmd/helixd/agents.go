package main

import (
	"fmt"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// agentsOf makes the configured agents.
func agentsOf(c *config.Config) ([]agentloop.Agent, error) {
	var agents []agentloop.Agent
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a := c.Agents[name]
		m, err := modelOf(a.Model)
		if err != nil {
			return nil, fmt.Errorf("agents.%s.model: %w", name, err)
		}
		retries := a.Model.MaxRetries
		if retries == 0 {
			retries = -1 // configured: never
		}
		agents = append(agents, agentloop.Agent{
			Name: name, Description: a.Description, SystemPrompt: a.SystemPrompt, Model: m, Tools: toolsOf(a),
			OutputSchema: a.OutputSchema, InitialState: a.InitialState, MaxSteps: a.MaxSteps, MaxRetries: retries,
			InputSchema: a.InputSchema, SubAgents: subAgentsOf(a), PersistentAgents: persistentAgentsOf(a),
			RemoteAgents: remoteAgentsOf(a), Workspace: workspaceOf(a),
		})
	}
	return agents, nil
}

func modelOf(m config.Model) (model.Model, error) {
	switch m.Provider {
	case config.ProviderAnthropic:
		return anthropic.New(m.Name, &anthropic.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature,
			Effort: m.Reasoning.Effort, ThinkingTokens: int64(m.Reasoning.BudgetTokens),
		}), nil
	case config.ProviderOpenAI:
		return openai.New(m.Name, &openai.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature, Effort: m.Reasoning.Effort,
		}), nil
	case config.ProviderOpenAIResponses:
		return openairesponses.New(m.Name, &openairesponses.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature,
			Effort: m.Reasoning.Effort, Summary: m.Reasoning.Summary,
		}), nil
	case config.ProviderScripted:
		turns := make([]scripted.Turn, len(m.Script))
		for i, t := range m.Script {
			turns[i] = scripted.Turn{Reasoning: t.Reasoning, Text: t.Text}
			for _, c := range t.ToolCalls {
				turns[i].ToolCalls = append(turns[i].ToolCalls, scripted.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
			}
		}
		return scripted.New(turns, &scripted.Options{Name: m.Name, Delay: m.ScriptDelay}), nil
	}
	return nil, fmt.Errorf("provider %s is not supported by this version", m.Provider)
}
