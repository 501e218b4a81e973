package agentloop

import (
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/workspace"
)

// tool is a tool whose schema has been checked.
type tool struct {
	Tool
	op     *workspace.Op // of the session's workspace, which it does in place of Execute; nil: none
	input  *jsonschema.Resolved
	output *jsonschema.Resolved // of a client's result, or nil
}

// checkArguments returns why a model's arguments can't be used.
func checkArguments(schema *jsonschema.Resolved, args json.RawMessage) error {
	var v any
	if err := json.Unmarshal(args, &v); err != nil {
		return err
	}
	if _, ok := v.(map[string]any); !ok {
		return errors.New("the arguments are not a JSON object")
	}
	return schema.Validate(v)
}

// argumentsOf returns the schema of a tool's arguments.
func (d *definition) argumentsOf(tool string) (*jsonschema.Resolved, bool) {
	switch {
	case tool == FinishTool && d.finish != nil:
		return d.finish, true
	case d.tools[tool] != nil:
		return d.tools[tool].input, true
	case d.subs[tool] != nil:
		return d.subs[tool].def.input, true
	case d.companion[tool] != nil:
		return d.companion[tool], true
	}
	return nil, false
}

// checkResult returns why a client's result does not fit the tool.
func checkResult(tool *tool, result json.RawMessage) error {
	if tool.output == nil {
		return nil
	}
	var v any
	if err := json.Unmarshal(result, &v); err != nil {
		return err
	}
	return tool.output.Validate(v)
}
