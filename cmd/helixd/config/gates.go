package config

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/httptool"
)

// toolsOf makes an agent's configured tools.
func toolsOf(a Agent) []agentloop.Tool {
	var tools []agentloop.Tool
	for _, name := range slices.Sorted(maps.Keys(a.Tools)) {
		t := a.Tools[name]
		tool := agentloop.Tool{
			Name: name, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema,
			FinishWith: t.FinishWith, Client: t.Client, RequireApproval: approvalOf(t.RequireApproval), Timeout: t.Timeout, Strict: t.Strict,
		}
		if t.HTTP != nil {
			tool.Execute = httptool.Execute(t.HTTP.URL, &httptool.Options{Headers: Revealed(t.HTTP.Headers)})
		}
		tools = append(tools, tool)
	}
	return tools
}

// approvalsOf are the approvals of an agent's tools by name and pattern.
func approvalsOf(a Agent) []agentloop.Approval {
	var all []agentloop.Approval
	for _, tools := range slices.Sorted(maps.Keys(a.RequireApproval)) {
		all = append(all, agentloop.Approval{Tools: tools, Require: approvalOf(a.RequireApproval[tools])})
	}
	return all
}

// approvalOf returns what decides whether a call needs approval, nil if none
// does. An error, as of a schema that can't be used, counts as yes.
func approvalOf(raw json.RawMessage) agentloop.Gate {
	required, when := Approval(raw)
	switch {
	case !required:
		return nil
	case when == nil:
		return agentloop.AlwaysApprove
	}
	var schema jsonschema.Schema
	var resolved *jsonschema.Resolved
	broken := json.Unmarshal(when, &schema)
	if broken == nil {
		resolved, broken = schema.Resolve(nil)
	}
	return func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (bool, error) {
		if broken != nil {
			return true, broken
		}
		var v any
		if err := json.Unmarshal(args, &v); err != nil {
			return true, err
		}
		return resolved.Validate(v) == nil, nil
	}
}
