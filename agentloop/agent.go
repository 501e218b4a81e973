package agentloop

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

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
	// The model then gets the tool __finish__ and must call it, or a tool with
	// FinishWith, to end.
	OutputSchema json.RawMessage
	// StrictOutput asks the provider to give only outputs that fit OutputSchema,
	// of which it may then take fewer forms. The output is checked anyway.
	StrictOutput bool
	// InitialState is the custom state of a new session, an object; nil: {}.
	InitialState json.RawMessage
	// MaxSteps is how many steps a turn may have; 0: DefaultMaxSteps.
	MaxSteps int
	// MaxRetries is how often a failed model call is repeated; 0:
	// DefaultMaxRetries, negative: never.
	MaxRetries int

	// InputSchema is the JSON Schema (of an object) of what the agent takes
	// as a sub-agent; nil: {"message": string}. Its first user message is the
	// member message if that is all there is, else the JSON.
	InputSchema json.RawMessage
	// SubAgents are agents of the same loop that the model may hand a task
	// to, as tools subagent__{name}. Each must have an OutputSchema.
	SubAgents []SubAgent
	// PersistentAgents are agents of the same loop that the model may start,
	// talk to and stop with companion tools.
	PersistentAgents []PersistentAgent
	// RemoteAgents are agents of other servers, as tools subagent__{name}.
	RemoteAgents []RemoteAgent
	// Recall, if set, reminds the agent at the beginning of each turn, once.
	Recall Recaller
	// Hooks, if set, are told of what sessions of the agent do, and those of
	// its sub-agents.
	Hooks *Hooks
	// Workspace, if set, gives each session files, and maybe commands.
	Workspace *AgentWorkspace
	// Approvals are the calls that a person must approve, beside those that the
	// tools themselves name.
	Approvals []Approval
}

// Defaults of an agent.
const (
	DefaultMaxSteps   = 10
	DefaultMaxRetries = 3
	// DefaultRetryDelay is that of [Options.RetryDelay].
	DefaultRetryDelay = time.Second
)

// FinishTool is the tool by which a model gives structured output.
const FinishTool = "__finish__"

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
		if err := d.addTool(t); err != nil {
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

func (d *definition) addTool(t Tool) error {
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
	case !t.Client && t.Execute == nil:
		return fmt.Errorf("tool %s: nothing to execute", t.Name)
	}
	if t.InputSchema == nil {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	schema, err := resolveObject(t.InputSchema)
	if err != nil {
		return fmt.Errorf("tool %s: input schema: %w", t.Name, err)
	}
	checked := &tool{Tool: t, input: schema}
	if t.OutputSchema != nil {
		if checked.output, err = resolveAny(t.OutputSchema); err != nil {
			return fmt.Errorf("tool %s: output schema: %w", t.Name, err)
		}
	}
	d.tools[t.Name] = checked
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
