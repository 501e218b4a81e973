package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// CheckClientTools returns a *eventlog.ValidationError about the first tool that no run can
// have. d is the agent of the run, nil if it is not known here.
func CheckClientTools(d *Agent, tools []fact.ClientTool) error {
	probe := &Agent{Functions: map[string]*Tool{}}
	for i, t := range tools {
		path := fmt.Sprintf("tools[%d]", i)
		if d != nil && d.has(t.Name) {
			if own := d.Functions[t.Name]; own != nil && own.Client {
				continue // the client executes it in any case
			}
			return &eventlog.ValidationError{Field: path + ".name", Reason: fmt.Sprintf("the agent has a tool %q already", t.Name)}
		}
		probe.addTool(toolOf(t))
		if len(probe.faults) > 0 {
			reason := probe.faults[0].Error()
			if fault, ok := probe.faults[0].(*agentloop.AgentError); ok {
				reason = fault.Problem
			}
			return &eventlog.ValidationError{Field: path, Reason: reason}
		}
	}
	return nil
}

// With returns the agent with the tools of a client for one run. It leaves out tools that the
// agent can't have, such as those with the name of one of its own.
func (d *Agent) With(tools []fact.ClientTool) *Agent {
	if d == nil || len(tools) == 0 {
		return d
	}
	with := *d
	with.Functions, with.Specs, with.faults = maps.Clone(d.Functions), slices.Clip(d.Specs), nil
	for _, t := range tools {
		if !with.has(t.Name) && CheckClientTools(&with, []fact.ClientTool{t}) == nil {
			with.addTool(toolOf(t))
		}
	}
	return &with
}

func toolOf(t fact.ClientTool) Tool {
	return Tool{Tool: agentloop.Tool{
		Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Strict: t.Strict, Client: true,
	}}
}

// has reports whether the model knows a tool of that name.
func (d *Agent) has(name string) bool {
	_, known := d.ArgumentsOf(name)
	return known || d.Remotes[name] != nil
}
