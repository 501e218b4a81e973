package engine

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
)

// SetAgents replaces all agents. Trees that are being driven continue with the agents
// with which they were claimed until they are idle; all others, and those that other
// nodes hand over, have the new ones. unused is closed when no tree is driven with the
// old ones any more. An error means that one of the agents is invalid, as with New, and
// that nothing has changed.
//
// With an [agentloop.Worklist], notify other nodes which agents are here now: see
// worklist.Worklist.Rehost.
func (l *Loop) SetAgents(agents []agentloop.Agent) (unused <-chan struct{}, err error) {
	next, err := plan.Compile(agents)
	if err == nil {
		err = l.files.Providers.Check(next)
	}
	if err != nil {
		return nil, err
	}
	l.files.Metrics.Agents(next)
	return l.agents.Replace(next), nil
}

// Check returns what is wrong with agents, as New and SetAgents do: an
// [agentloop.AgentError] for each fault, joined. It does not look at the providers of
// their workspaces.
func Check(agents []agentloop.Agent) error {
	_, err := plan.Compile(agents)
	return err
}

// AgentTypes returns the names of the agents, sorted.
func (l *Loop) AgentTypes() []string {
	names := slices.AppendSeq([]string{}, maps.Keys(l.agents.Defs())) // an empty list is shown as one
	slices.Sort(names)
	return names
}

// InitialState returns the initial state of an agent that this node hosts.
func (l *Loop) InitialState(agentType string) (state json.RawMessage, hosted bool) {
	def := l.agents.Defs()[agentType]
	if def == nil {
		return nil, false
	}
	return def.InitialState, true
}
