package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/remote"
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
func (d *Agent) link(agents map[string]*Agent) {
	for i, sub := range d.SubAgents {
		at := fmt.Sprintf("subAgents[%d]", i)
		child, tool := agents[sub.Agent], agentloop.SubAgentPrefix+sub.Agent
		if d.Subs[tool] != nil {
			d.refuse(at, twice)
			continue
		}
		d.checkChildName(at, sub.Agent)
		if child == nil {
			d.refuseUnknown(at, agents)
			continue
		}
		if child.OutputSchema == nil {
			d.refuse(at, "agent %s needs an outputSchema: it is what the call returns", sub.Agent)
		}
		sub.Description = cmp.Or(sub.Description, child.Description)
		d.offer(tool, sub.Description, child.InputSchema)
		d.Subs[tool] = &SubAgent{SubAgent: sub, Def: child}
	}
	d.linkRemotes()
	d.linkPersistent(agents)
}

// checkChildName checks a name of which the tool's name is made.
func (d *Agent) checkChildName(path, name string) {
	const most = 64 - len(agentloop.SubAgentPrefix)
	switch {
	case name == "":
	case !namePattern.MatchString(name):
		d.refuse(path, nameRule)
	case len(name) > most:
		d.refuse(path, "the name of a sub-agent has at most %d characters", most)
	}
}

// offer adds a tool that the engine executes to those that the model sees.
func (d *Agent) offer(tool, description string, schema json.RawMessage) {
	d.Specs = append(d.Specs, model.ToolSpec{Name: tool, Description: description, InputSchema: schema})
}

// RemoteAgent is a remote agent whose schemas have been checked.
type RemoteAgent struct {
	agentloop.RemoteAgent
	Input, Output *jsonschema.Resolved
}

func (d *Agent) linkRemotes() {
	for _, r := range d.RemoteAgents {
		at, tool := "remoteAgents."+r.Name, agentloop.SubAgentPrefix+r.Name
		d.checkChildName(at, r.Name)
		switch {
		case r.Name == "":
			d.refuse(at, nameRule)
		case d.Subs[tool] != nil:
			d.refuse(at, "is one of subAgents, too")
		case d.Remotes[tool] != nil:
			d.refuse(at, twice)
		}
		if r.Transport == nil {
			d.refuse(at, "no transport")
		}
		if r.Timeout <= 0 {
			d.refuse(at+".timeout", "must be greater than 0")
		}
		if r.StreamRetries > remote.MaxStreamRetries {
			d.refuse(at+".streamRetries", "must be at most %d", remote.MaxStreamRetries)
		}
		if r.AgentType == "" {
			d.refuse(at+".agentType", "must not be empty")
		} else if bad, ok := errors.AsType[*eventlog.ValidationError](eventlog.ValidateID(r.AgentType)); ok {
			d.refuse(at+".agentType", "%s", bad.Reason)
		}
		if r.InputSchema == nil {
			r.InputSchema = json.RawMessage(messageSchema)
		}
		d.offer(tool, r.Description, r.InputSchema)
		d.Remotes[tool] = &RemoteAgent{
			RemoteAgent: r, Input: d.objectSchema(at+".inputSchema", r.InputSchema), Output: d.schema(at+".outputSchema", r.OutputSchema),
		}
	}
}
