package config

import (
	"encoding/json"
	"time"
)

// Tool is what an agent's model may call: an HTTP endpoint or something that
// the client does. FinishWith, RequireApproval and Client exclude each other.
type Tool struct {
	Description string `json:"description"` // for the model
	// InputSchema is the JSON Schema of the arguments; nil: any object.
	InputSchema json.RawMessage `json:"inputSchema"`
	HTTP        *HTTP           `json:"http"`
	// Client makes the run wait until somebody submits the result.
	Client bool `json:"client"`
	// OutputSchema is what a client's result must fit; nil: anything.
	OutputSchema json.RawMessage `json:"outputSchema"`
	// Timeout is positive; default 30s, or 10m for a client tool.
	Timeout time.Duration `json:"timeout"`
	// FinishWith makes the tool's result the agent's output.
	FinishWith bool `json:"finishWith"`
	// RequireApproval is true, or {"when": schema} for arguments that match
	// the schema; nil or false: never.
	RequireApproval json.RawMessage `json:"requireApproval"`
}

// Approval returns whether calls may need a person's approval, and if not all
// of them do, the JSON Schema of the arguments of those that do.
func (t Tool) Approval() (required bool, when json.RawMessage) {
	switch string(t.RequireApproval) {
	case "", "false":
		return false, nil
	}
	return true, approvalWhen(t.RequireApproval)
}

// approvalWhen returns the schema of {"when": schema}, or nil if it is none.
func approvalWhen(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil || len(fields) != 1 {
		return nil
	}
	return fields["when"]
}

// HTTP is the endpoint of a tool.
type HTTP struct {
	URL     string            `json:"url"`     // absolute, http or https
	Headers map[string]Secret `json:"headers"` // sent along, such as an Authorization
}

// setTimeouts fills in the timeouts that nobody set; they depend on the
// tool's kind.
func (c *Config) setTimeouts() {
	for name, a := range c.Agents {
		for toolName, t := range a.Tools {
			if t.Timeout != 0 || c.isSet(join("agents", name, "tools", toolName, "timeout")) {
				continue
			}
			t.Timeout = DefaultHTTPTimeout
			if t.Client {
				t.Timeout = DefaultClientTimeout
			}
			a.Tools[toolName] = t
		}
	}
}
