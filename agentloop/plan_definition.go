package agentloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/model"
)

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// definition is an agent that has been checked.
type definition struct {
	Agent
	tools     map[string]*tool
	subs      map[string]*subAgent    // by tool name
	remotes   map[string]*remoteAgent // by tool name
	persist   map[string]PersistentAgent
	companion map[string]*jsonschema.Resolved // arguments, by tool name
	specs     []model.ToolSpec
	finish    *jsonschema.Resolved // of OutputSchema, or nil
	input     *jsonschema.Resolved // of InputSchema
	gates     map[string][]Gate    // by tool name
	maxTries  int                  // of one model call
}

func define(a Agent) (*definition, error) {
	d := &definition{
		Agent: a, tools: map[string]*tool{}, subs: map[string]*subAgent{}, remotes: map[string]*remoteAgent{},
		persist: map[string]PersistentAgent{},
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
	if !isObject(d.InitialState) {
		return nil, fmt.Errorf("agentloop: agent %s: initial state must be an object", a.Name)
	}
	if d.MaxSteps <= 0 {
		d.MaxSteps = DefaultMaxSteps
	}
	switch {
	case a.MaxRetries == 0:
		d.maxTries = 1 + DefaultMaxRetries
	default:
		d.maxTries = 1 + max(a.MaxRetries, 0)
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(messageSchema)
	}
	var err error
	if d.input, err = resolveObject(d.InputSchema); err != nil {
		return nil, fmt.Errorf("agentloop: agent %s: input schema: %w", a.Name, err)
	}
	for _, t := range a.Tools {
		if err := d.addTool(tool{Tool: t}); err != nil {
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
		d.finish = schema
		d.specs = append(d.specs, model.ToolSpec{
			Name: FinishTool, InputSchema: a.OutputSchema, Strict: a.StrictOutput,
			Description: "Give the final answer. Call this once, when the task is done.",
		})
	}
	return d, nil
}

func (d *definition) addTool(t tool) error {
	switch {
	case !namePattern.MatchString(t.Name):
		return fmt.Errorf("tool %q: name must match %s", t.Name, namePattern)
	case strings.HasPrefix(t.Name, "__"), strings.HasPrefix(t.Name, SubAgentPrefix), strings.HasPrefix(t.Name, CompanionPrefix):
		return fmt.Errorf("tool %s: names that begin with __, %s or %s are reserved", t.Name, SubAgentPrefix, CompanionPrefix)
	case d.tools[t.Name] != nil:
		return fmt.Errorf("tool %s: defined twice", t.Name)
	case t.Client && t.FinishWith:
		return fmt.Errorf("tool %s: a client-executed tool can't finish the turn", t.Name)
	case t.Client && t.RequireApproval != nil:
		return fmt.Errorf("tool %s: a client-executed tool can't require approval", t.Name)
	case t.FinishWith && t.RequireApproval != nil:
		return fmt.Errorf("tool %s: a tool that finishes the turn can't require approval", t.Name)
	case t.Client && t.Execute != nil:
		return fmt.Errorf("tool %s: a client-executed tool has nothing to execute here", t.Name)
	case !t.Client && t.Execute == nil && t.op == nil:
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
	d.tools[t.Name] = &t
	d.specs = append(d.specs, model.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema, Strict: t.Strict})
	return nil
}

// finishes reports whether a successful call of the tool ends the turn.
func (d *definition) finishes(name string) bool {
	if name == FinishTool {
		return d.finish != nil
	}
	t := d.tools[name]
	return t != nil && t.FinishWith
}

// checkOutput returns why a tool's result can't be the output, if the tool ends
// the turn with it.
func (d *definition) checkOutput(tool string, result json.RawMessage) error {
	if tool == FinishTool || !d.finishes(tool) || d.finish == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(result, &v); err != nil {
		return fmt.Errorf("the result is not JSON: %w", err)
	}
	if err := d.finish.Validate(v); err != nil {
		return fmt.Errorf("the result does not fit the agent's output schema: %w", err)
	}
	return nil
}

// The phases of a step's calls.
const (
	phaseOrdinary = iota
	phaseFinishing
	phaseCompanion
)

func (d *definition) phase(tool string) int {
	switch {
	case d.finishes(tool):
		return phaseFinishing
	case d.companion[tool] != nil:
		return phaseCompanion
	}
	return phaseOrdinary
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

func isObject(raw json.RawMessage) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(raw, &m) == nil && m != nil
}
