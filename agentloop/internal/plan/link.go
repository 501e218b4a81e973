package plan

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
)

// messageSchema is what an agent takes as a sub-agent if it says nothing else.
const messageSchema = `{"type":"object","properties":{"message":{"type":"string","description":"What to do."}},"required":["message"]}`

// SubAgent is a sub-agent that was found.
type SubAgent struct {
	agentloop.SubAgent
	Def *Agent
}

// link finds the agents that d hands tasks to.
func (d *Agent) link(agents map[string]*Agent) error {
	for _, sub := range d.SubAgents {
		child := agents[sub.Agent]
		switch {
		case child == nil:
			return fmt.Errorf("sub-agent %s: %w", sub.Agent, agentloop.ErrUnknownAgent)
		case child.OutputSchema == nil:
			return fmt.Errorf("sub-agent %s: it must have an output schema", sub.Agent)
		}
		if sub.Description == "" {
			sub.Description = child.Description
		}
		tool := agentloop.SubAgentPrefix + sub.Agent
		if err := d.offer(tool, sub.Description, child.InputSchema); err != nil {
			return err
		}
		d.Subs[tool] = &SubAgent{SubAgent: sub, Def: child}
	}
	if err := d.linkRemotes(); err != nil {
		return err
	}
	return d.linkPersistent(agents)
}

// offer adds a tool of the loop's own to what the model is told.
func (d *Agent) offer(tool, description string, schema json.RawMessage) error {
	if !namePattern.MatchString(tool) {
		return fmt.Errorf("%s: name must match %s", tool, namePattern)
	}
	for _, spec := range d.Specs {
		if spec.Name == tool {
			return fmt.Errorf("%s: defined twice", tool)
		}
	}
	d.Specs = append(d.Specs, model.ToolSpec{Name: tool, Description: description, InputSchema: schema})
	return nil
}

// RemoteAgent is a remote agent whose schemas have been checked.
type RemoteAgent struct {
	agentloop.RemoteAgent
	Input, Output *jsonschema.Resolved
}

func (d *Agent) linkRemotes() error {
	for _, r := range d.RemoteAgents {
		switch {
		case r.Transport == nil:
			return fmt.Errorf("remote agent %s: no transport", r.Name)
		case r.Timeout <= 0:
			return fmt.Errorf("remote agent %s: it needs a time-out", r.Name)
		case r.StreamRetries > 50:
			return fmt.Errorf("remote agent %s: at most 50 stream retries", r.Name)
		case eventlog.ValidateID(r.AgentType) != nil:
			return fmt.Errorf("remote agent %s: it needs an agent type", r.Name)
		}
		if r.InputSchema == nil {
			r.InputSchema = json.RawMessage(messageSchema)
		}
		checked := &RemoteAgent{RemoteAgent: r}
		var err error
		if checked.Input, err = resolveObject(r.InputSchema); err != nil {
			return fmt.Errorf("remote agent %s: input schema: %w", r.Name, err)
		}
		if r.OutputSchema != nil {
			if checked.Output, err = resolveAny(r.OutputSchema); err != nil {
				return fmt.Errorf("remote agent %s: output schema: %w", r.Name, err)
			}
		}
		tool := agentloop.SubAgentPrefix + r.Name
		if err := d.offer(tool, r.Description, r.InputSchema); err != nil {
			return err
		}
		d.Remotes[tool] = checked
	}
	return nil
}
