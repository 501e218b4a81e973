// Package plan compiles agents: it checks their names, schemas and links, and knows
// of each tool call which schema, approval gates and target it has.
package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
)

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Agent is an agent that has been checked.
type Agent struct {
	agentloop.Agent
	Functions  map[string]*Tool
	Subs       map[string]*SubAgent    // by tool name
	Remotes    map[string]*RemoteAgent // by tool name
	Persistent map[string]agentloop.PersistentAgent
	Companion  map[string]*jsonschema.Resolved // arguments, by tool name
	Specs      []model.ToolSpec
	Finish     *jsonschema.Resolved        // of OutputSchema, or nil
	input      *jsonschema.Resolved        // of InputSchema
	Gates      map[string][]agentloop.Gate // by tool name
	MaxTries   int                         // of one model call
	faults     []error
}

func define(a agentloop.Agent) *Agent {
	d := &Agent{
		Agent: a, Functions: map[string]*Tool{}, Subs: map[string]*SubAgent{}, Remotes: map[string]*RemoteAgent{},
		Persistent: map[string]agentloop.PersistentAgent{},
	}
	if !namePattern.MatchString(a.Name) {
		d.refuse("", nameRule)
	}
	if a.Model == nil {
		d.refuse("model", "must be given")
	}
	if d.InitialState == nil {
		d.InitialState = json.RawMessage("{}")
	}
	if !IsObject(d.InitialState) {
		d.refuse("initialState", "must be a mapping")
	}
	if d.MaxSteps <= 0 {
		d.MaxSteps = agentloop.DefaultMaxSteps
	}
	d.MaxTries = 1 + max(cmp.Or(a.MaxRetries, agentloop.DefaultMaxRetries), 0)
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(messageSchema)
	}
	d.Finish = d.objectSchema("outputSchema", a.OutputSchema)
	d.input = d.objectSchema("inputSchema", d.InputSchema)
	for _, t := range a.Tools {
		d.addTool(Tool{Tool: t})
	}
	if a.Workspace != nil {
		d.addWorkspace(*a.Workspace)
	}
	if a.OutputSchema != nil {
		d.Specs = append(d.Specs, model.ToolSpec{
			Name: agentloop.FinishTool, InputSchema: a.OutputSchema, Strict: a.StrictOutput,
			Description: "Give the final answer. Call this once, when the task is done.",
		})
	}
	return d
}

func (d *Agent) addTool(t Tool) {
	path := "tools." + t.Name
	if !namePattern.MatchString(t.Name) {
		d.refuse(path, nameRule)
	}
	if strings.HasPrefix(t.Name, "__") || strings.HasPrefix(t.Name, agentloop.SubAgentPrefix) || strings.HasPrefix(t.Name, agentloop.CompanionPrefix) {
		d.refuse(path, "names that begin with __, %s or %s are reserved", agentloop.SubAgentPrefix, agentloop.CompanionPrefix)
	}
	if d.Functions[t.Name] != nil {
		d.refuse(path, twice)
	}
	switch {
	case t.Client && t.Execute != nil:
		d.refuse(path, "a client-executed tool has nothing to execute here")
	case !t.Client && t.Execute == nil && t.Op == nil:
		d.refuse(path, "nothing to execute")
	}
	if t.Client && t.FinishWith {
		d.refuse(path+".finishWith", "can't be combined with client")
	}
	switch {
	case t.RequireApproval == nil:
	case t.Client:
		d.refuse(path+".requireApproval", "can't be combined with client")
	case t.FinishWith:
		d.refuse(path+".requireApproval", "can't be combined with finishWith")
	}
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	t.input = d.objectSchema(path+".inputSchema", t.InputSchema)
	t.output = d.schema(path+".outputSchema", t.OutputSchema)
	d.Functions[t.Name] = &t
	d.Specs = append(d.Specs, model.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Strict: t.Strict})
}

// Finishes reports whether a successful call of the tool ends the turn.
func (d *Agent) Finishes(name string) bool {
	if name == agentloop.FinishTool {
		return d.Finish != nil
	}
	t := d.Functions[name]
	return t != nil && t.FinishWith
}

// CheckOutput returns why a tool's result can't be the output, if the tool ends
// the turn with it.
func (d *Agent) CheckOutput(tool string, result json.RawMessage) error {
	if tool == agentloop.FinishTool || !d.Finishes(tool) {
		return nil
	}
	if err := Fits(d.Finish, result); err != nil {
		return fmt.Errorf("the result does not fit the agent's output schema: %w", err)
	}
	return nil
}

// The phases of a step's calls.
const (
	PhaseOrdinary = iota
	PhaseFinishing
	PhaseCompanion
)

// Phase is the phase in which a call of the tool is executed.
func (d *Agent) Phase(tool string) int {
	switch {
	case d.Finishes(tool):
		return PhaseFinishing
	case d.Companion[tool] != nil:
		return PhaseCompanion
	}
	return PhaseOrdinary
}

// schema resolves a JSON Schema, nil if there is none.
func (d *Agent) schema(path string, raw json.RawMessage) *jsonschema.Resolved {
	if raw == nil {
		return nil
	}
	var s jsonschema.Schema
	var always bool // a schema, too
	if !IsObject(raw) && json.Unmarshal(raw, &always) != nil {
		d.refuse(path, "must be a JSON Schema, a mapping")
		return nil
	}
	err := json.Unmarshal(raw, &s)
	if err != nil {
		d.refuse(path, "must be a JSON Schema: %v", err)
		return nil
	}
	if err := CheckEnds(raw); err != nil {
		d.refuse(path, "%v", err)
		return nil
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		d.refuse(path, "must be a JSON Schema: %v", err)
	}
	return resolved
}

// objectSchema resolves a JSON Schema of objects: models and agents are called with
// objects, and end with one.
func (d *Agent) objectSchema(path string, raw json.RawMessage) *jsonschema.Resolved {
	resolved := d.schema(path, raw)
	if resolved != nil && resolved.Schema().Type != "object" {
		d.refuse(path, "must have type: object")
	}
	return resolved
}

// IsObject reports whether raw is a JSON object.
func IsObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}
