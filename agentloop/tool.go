package agentloop

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Tool is what a model may call.
type Tool struct {
	Name        string // [a-zA-Z0-9_-]{1,64}, not beginning with __
	Description string
	InputSchema json.RawMessage // JSON Schema of an object; nil: any object
	// Strict asks the model's provider to give only arguments that fit
	// InputSchema, of which it may then take fewer forms. They are checked anyway.
	Strict bool
	// FinishWith makes the tool's result the run's output. Such tools run
	// after all others of a step, one after the other. A result that does not
	// fit the agent's OutputSchema fails the call, and the model receives the
	// error.
	FinishWith bool
	// Client makes it a client-executed tool: the run is suspended until
	// a client submits the result. It excludes Execute,
	// FinishWith and RequireApproval.
	Client bool
	// OutputSchema, if set, is what a client's result must fit.
	OutputSchema json.RawMessage
	// RequireApproval, if set, decides of each call whether a person must
	// approve it first; see [AlwaysApprove] and [Agent].Approvals. It excludes
	// FinishWith.
	RequireApproval Gate
	// Timeout ends the call's context, and is how long a client has to
	// answer; 0: none. The model gets an error.
	Timeout time.Duration
	// Execute runs the tool. args fit InputSchema. The result must be
	// encodable as JSON; an error goes to the model and drops the call's
	// state updates. ctx ends on the timeout and when the run is stopped.
	Execute func(ctx context.Context, c *Call, args json.RawMessage) (any, error)
}

// AlwaysApprove requires approval of every call.
func AlwaysApprove(context.Context, *Call, json.RawMessage) (bool, error) { return true, nil }

// NewTool makes a tool of a Go function. The input schema comes from In,
// whose fields' json and jsonschema tags name and describe them. It panics if
// In has no schema of an object.
func NewTool[In, Out any](name, description string, f func(context.Context, *Call, In) (Out, error)) Tool {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("agentloop: tool %s: %v", name, err))
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		panic(fmt.Sprintf("agentloop: tool %s: %v", name, err))
	}
	return Tool{
		Name: name, Description: description, InputSchema: raw,
		Execute: func(ctx context.Context, c *Call, args json.RawMessage) (any, error) {
			var in In
			if err := json.Unmarshal(args, &in); err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
			return f(ctx, c, in)
		},
	}
}
