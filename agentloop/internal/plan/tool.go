package plan

import (
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/workspace"
)

// Tool is a tool whose schema has been checked.
type Tool struct {
	agentloop.Tool
	Op     *workspace.Op // of the session's workspace, which it does in place of Execute; nil: none
	input  *jsonschema.Resolved
	output *jsonschema.Resolved // of a client's result, or nil
}

// CheckArguments returns why a model's arguments can't be used.
func CheckArguments(schema *jsonschema.Resolved, args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return err
	}
	switch v.(type) {
	case map[string]any:
		return schema.Validate(v)
	case string: // also what is recorded of arguments that are not JSON
		return errors.New("the arguments are not a JSON object: the answer may have been cut off before they were complete")
	default:
		return errors.New("the arguments are not a JSON object")
	}
}

// ArgumentsOf returns the schema of a tool's arguments.
func (d *Agent) ArgumentsOf(tool string) (*jsonschema.Resolved, bool) {
	switch {
	case tool == agentloop.FinishTool && d.Finish != nil:
		return d.Finish, true
	case d.Functions[tool] != nil:
		return d.Functions[tool].input, true
	case d.Subs[tool] != nil:
		return d.Subs[tool].Def.input, true
	case d.Companion[tool] != nil:
		return d.Companion[tool], true
	}
	return nil, false
}

// CheckResult returns why a client's result does not fit a tool of the agent, which is nil if
// it is not here.
func (d *Agent) CheckResult(tool string, result json.RawMessage) error {
	if d == nil || d.Functions[tool] == nil {
		return nil
	}
	return Fits(d.Functions[tool].output, result)
}

// Fits returns why JSON does not fit a schema, nil if there is no schema.
func Fits(schema *jsonschema.Resolved, raw json.RawMessage) error {
	if schema == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return schema.Validate(v)
}
