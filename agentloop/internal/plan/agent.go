// Package plan compiles agents: it checks their names, schemas and links, and knows
// of each tool call which schema, approval gates and target it has.
package plan

import (
	"encoding/json"
	"errors"
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
}

func define(a agentloop.Agent) (*Agent, error) {
	d := &Agent{
		Agent: a, Functions: map[string]*Tool{}, Subs: map[string]*SubAgent{}, Remotes: map[string]*RemoteAgent{},
		Persistent: map[string]agentloop.PersistentAgent{},
	}
	if !namePattern.MatchString(a.Name) {
		return nil, fmt.Errorf("agentloop: agent %q: name must match %s", a.Name, namePattern)
	}
	if a.Model == nil {
		return nil, fmt.Errorf("agentloop: agent %s: no model", a.Name)
	}
	if d.InitialState == nil {
		d.InitialState = json.RawMessage("{}")
	}
	if !IsObject(d.InitialState) {
		return nil, fmt.Errorf("agentloop: agent %s: initial state must be an object", a.Name)
	}
	if d.MaxSteps <= 0 {
		d.MaxSteps = agentloop.DefaultMaxSteps
	}
	switch {
	case a.MaxRetries == 0:
		d.MaxTries = 1 + agentloop.DefaultMaxRetries
	default:
		d.MaxTries = 1 + max(a.MaxRetries, 0)
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(messageSchema)
	}
	var err error
	if d.input, err = resolveObject(d.InputSchema); err != nil {
		return nil, fmt.Errorf("agentloop: agent %s: input schema: %w", a.Name, err)
	}
	for _, t := range a.Tools {
		if err := d.addTool(Tool{Tool: t}); err != nil {
			return nil, fmt.Errorf("agentloop: agent %s: %w", a.Name, err)
		}
	}
	if a.Workspace != nil {
		if err := d.addWorkspace(*a.Workspace); err != nil {
			return nil, fmt.Errorf("agentloop: agent %s: %w", a.Name, err)
		}
	}
	if a.OutputSchema != nil {
		schema, err := resolveObject(a.OutputSchema)
		if err != nil {
			return nil, fmt.Errorf("agentloop: agent %s: output schema: %w", a.Name, err)
		}
		d.Finish = schema
		d.Specs = append(d.Specs, model.ToolSpec{
			Name: agentloop.FinishTool, InputSchema: a.OutputSchema, Strict: a.StrictOutput,
			Description: "Give the final answer. Call this once, when the task is done.",
		})
	}
	return d, nil
}

func (d *Agent) addTool(t Tool) error {
	switch {
	case !namePattern.MatchString(t.Name):
		return fmt.Errorf("tool %q: name must match %s", t.Name, namePattern)
	case strings.HasPrefix(t.Name, "__"), strings.HasPrefix(t.Name, agentloop.SubAgentPrefix), strings.HasPrefix(t.Name, agentloop.CompanionPrefix):
		return fmt.Errorf("tool %s: names that begin with __, %s or %s are reserved", t.Name, agentloop.SubAgentPrefix, agentloop.CompanionPrefix)
	case d.Functions[t.Name] != nil:
		return fmt.Errorf("tool %s: defined twice", t.Name)
	case t.Client && t.FinishWith:
		return fmt.Errorf("tool %s: a client-executed tool can't finish the turn", t.Name)
	case t.Client && t.RequireApproval != nil:
		return fmt.Errorf("tool %s: a client-executed tool can't require approval", t.Name)
	case t.FinishWith && t.RequireApproval != nil:
		return fmt.Errorf("tool %s: a tool that finishes the turn can't require approval", t.Name)
	case t.Client && t.Execute != nil:
		return fmt.Errorf("tool %s: a client-executed tool has nothing to execute here", t.Name)
	case !t.Client && t.Execute == nil && t.Op == nil:
		return fmt.Errorf("tool %s: nothing to execute", t.Name)
	}
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	schema, err := resolveObject(t.InputSchema)
	if err != nil {
		return fmt.Errorf("tool %s: input schema: %w", t.Name, err)
	}
	t.input = schema
	if t.OutputSchema != nil {
		if t.output, err = resolveAny(t.OutputSchema); err != nil {
			return fmt.Errorf("tool %s: output schema: %w", t.Name, err)
		}
	}
	d.Functions[t.Name] = &t
	d.Specs = append(d.Specs, model.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Strict: t.Strict})
	return nil
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
	if tool == agentloop.FinishTool || !d.Finishes(tool) || d.Finish == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(result, &v); err != nil {
		return fmt.Errorf("the result is not JSON: %w", err)
	}
	if err := d.Finish.Validate(v); err != nil {
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

func (d *Agent) Phase(tool string) int {
	switch {
	case d.Finishes(tool):
		return PhaseFinishing
	case d.Companion[tool] != nil:
		return PhaseCompanion
	}
	return PhaseOrdinary
}

func resolveAny(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return s.Resolve(nil)
}

func resolveObject(raw json.RawMessage) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, errors.New(`type must be "object"`)
	}
	return s.Resolve(nil)
}

func IsObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}
