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

// Agent defines an agent.
type Agent struct {
	Name         string // the agent type, [a-zA-Z0-9_-]{1,64}
	Description  string
	SystemPrompt string
	Model        model.Model
	Tools        []Tool
	// OutputSchema, if set, is the JSON Schema (of an object) of the output.
	// The model then gets the tool __finish__ and must call it to end.
	OutputSchema json.RawMessage
	// InitialState is the custom state of a new session, an object; nil: {}.
	InitialState json.RawMessage
	// MaxSteps is how many steps a turn may have; 0: DefaultMaxSteps.
	MaxSteps int
	// MaxRetries is how often a failed model call is repeated; 0:
	// DefaultMaxRetries, negative: never.
	MaxRetries int
}

// Defaults of an agent.
const (
	DefaultMaxSteps   = 10
	DefaultMaxRetries = 3
)

// FinishTool is the tool by which a model gives structured output.
const FinishTool = "__finish__"

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// definition is an agent that has been checked.
type definition struct {
	Agent
	tools    map[string]*tool
	specs    []model.ToolSpec
	finish   *jsonschema.Resolved // of OutputSchema, or nil
	maxTries int                  // of one model call
}

func define(a Agent) (*definition, error) {
	d := &definition{Agent: a, tools: map[string]*tool{}}
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
	for _, t := range a.Tools {
		if err := d.addTool(t); err != nil {
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
			Name: FinishTool, InputSchema: a.OutputSchema,
			Description: "Give the final answer. Call this once, when the task is done.",
		})
	}
	return d, nil
}

func (d *definition) addTool(t Tool) error {
	switch {
	case !namePattern.MatchString(t.Name):
		return fmt.Errorf("tool %q: name must match %s", t.Name, namePattern)
	case strings.HasPrefix(t.Name, "__"):
		return fmt.Errorf("tool %s: names that begin with __ are reserved", t.Name)
	case d.tools[t.Name] != nil:
		return fmt.Errorf("tool %s: defined twice", t.Name)
	case t.Execute == nil:
		return fmt.Errorf("tool %s: nothing to execute", t.Name)
	}
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	schema, err := resolveObject(t.InputSchema)
	if err != nil {
		return fmt.Errorf("tool %s: input schema: %w", t.Name, err)
	}
	d.tools[t.Name] = &tool{Tool: t, input: schema}
	d.specs = append(d.specs, model.ToolSpec{Name: t.Name, Description: t.Description, InputSchema: t.InputSchema})
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
