package agentconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/anthropic"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/openairesponses"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/cmd/helixd/config"
)

// Agents makes the configured agents.
func Agents(c *config.Config) ([]agentloop.Agent, error) {
	var agents []agentloop.Agent
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a := c.Agents[name]
		m, err := modelOf(a.Model)
		if err != nil {
			return nil, fmt.Errorf("agents.%s.model: %w", name, err)
		}
		agents = append(agents, agentloop.Agent{
			Name: name, Description: a.Description, SystemPrompt: a.SystemPrompt, Model: m, Tools: toolsOf(a),
			OutputSchema: a.OutputSchema, InitialState: a.InitialState, MaxSteps: a.MaxSteps, MaxRetries: orNever(a.Model.MaxRetries),
			InputSchema: a.InputSchema, SubAgents: subAgentsOf(a), PersistentAgents: persistentAgentsOf(a),
			RemoteAgents: remoteAgentsOf(a), Workspace: workspaceOf(a), Approvals: approvalsOf(a), StrictOutput: a.Model.StrictOutput,
		})
	}
	return agents, nil
}

// AtKey says which key of the configuration the loop has refused an agent for.
func AtKey(c *config.Config, err error, known []workspace.Provider) error {
	if refused, is := errors.AsType[*agentloop.ApprovalError](err); is {
		return c.At("agents."+refused.Agent+".requireApproval."+refused.Tools, errors.New(refused.Problem))
	}
	return atWorkspace(c, err, known)
}

func modelOf(m config.Model) (model.Model, error) {
	options, _ := m.Options()
	switch m.Provider {
	case config.ProviderAnthropic:
		return anthropic.New(m.Name, &anthropic.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature,
			TopP: m.TopP, TopK: wide(m.TopK), StopSequences: m.StopSequences, Cache: m.Cache,
			Effort: m.Reasoning.Effort, ThinkingTokens: int64(m.Reasoning.BudgetTokens),
			Headers: revealed(m.Headers), ProviderOptions: options, IdleTimeout: m.IdleTimeout,
		}), nil
	case config.ProviderOpenAI:
		return openai.New(m.Name, &openai.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature,
			TopP: m.TopP, TopK: wide(m.TopK), FrequencyPenalty: m.FrequencyPenalty, PresencePenalty: m.PresencePenalty,
			Seed: wide(m.Seed), StopSequences: m.StopSequences, Effort: m.Reasoning.Effort,
			Headers: revealed(m.Headers), ProviderOptions: options, IdleTimeout: m.IdleTimeout,
		}), nil
	case config.ProviderOpenAIResponses:
		return openairesponses.New(m.Name, &openairesponses.Options{
			APIKey: m.APIKey.Reveal(), BaseURL: m.BaseURL,
			MaxOutputTokens: int64(m.MaxOutputTokens), Temperature: m.Temperature, TopP: m.TopP,
			Effort: m.Reasoning.Effort, Summary: m.Reasoning.Summary,
			Headers: revealed(m.Headers), ProviderOptions: options, IdleTimeout: m.IdleTimeout,
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

func wide(n *int) *int64 {
	if n == nil {
		return nil
	}
	return new(int64(*n))
}
