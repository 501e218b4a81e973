package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
)

// Compile checks agents, their schemas and what they refer to, by name. The error joins
// an [agentloop.AgentError] for each fault.
func Compile(agents []agentloop.Agent) (map[string]*Agent, error) {
	all := make(map[string]*Agent, len(agents))
	list := make([]*Agent, len(agents))
	for i, a := range agents {
		d := define(a)
		if all[a.Name] != nil {
			d.refuse("", twice)
		}
		all[a.Name], list[i] = d, d
	}
	var faults []error
	for _, d := range list {
		d.link(all)
		d.linkApprovals()
		faults = append(faults, d.faults...)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return all, nil
}

const (
	nameRule = "the name must match [a-zA-Z0-9_-]{1,64}"
	twice    = "is given twice"
)

// refuse reports a fault of the agent.
func (d *Agent) refuse(path, format string, args ...any) {
	d.faults = append(d.faults, &agentloop.AgentError{Agent: d.Name, Path: path, Problem: fmt.Sprintf(format, args...)})
}

// refuseUnknown reports a name that none of the agents has.
func (d *Agent) refuseUnknown(path string, agents map[string]*Agent) {
	problem := "must be one of the agents: " + strings.Join(slices.Sorted(maps.Keys(agents)), ", ")
	d.faults = append(d.faults, &agentloop.AgentError{Agent: d.Name, Path: path, Problem: problem, Cause: agentloop.ErrUnknownAgent})
}
