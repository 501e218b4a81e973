package config

import (
	"encoding/json"
	"time"
)

// Tool is what an agent's model may call: an HTTP endpoint or something that
// the client does. FinishWith, RequireApproval and Client exclude each other.
type Tool struct {
	Description string `json:"description"` // its description for the model
	// InputSchema is the JSON Schema of the arguments; nil: any object.
	InputSchema json.RawMessage `json:"inputSchema"`
	HTTP        *HTTP           `json:"http"`
	// Client is true if a client runs the tool: the run waits until a client submits
	// the result.
	Client bool `json:"client"`
	// OutputSchema is the JSON Schema that a client's result must match; nil:
	// anything.
	OutputSchema json.RawMessage `json:"outputSchema"`
	// Timeout is how long an HTTP tool, or a client, may take to answer; 0s: no limit.
	// Default 30s for an HTTP tool, none for a client tool.
	Timeout time.Duration `json:"timeout"`
	// Strict is true if the model's provider must enforce inputSchema. It may then
	// accept fewer schemas; see model.strictOutput.
	Strict bool `json:"strict"`
	// FinishWith is true if the tool's result is the agent's output. It must match the
	// agent's outputSchema, if there is one; otherwise the model receives the error.
	FinishWith bool `json:"finishWith"`
	// RequireApproval is true if every call needs approval, or {"when": schema} for
	// calls whose arguments match the schema; nil or false: never.
	RequireApproval json.RawMessage `json:"requireApproval"`
}

// Approval returns what a requireApproval says: whether calls may need a person's
// approval, and if not all of them do, the JSON Schema of the arguments of those
// that do.
func Approval(raw json.RawMessage) (required bool, when json.RawMessage) {
	switch string(raw) {
	case "", "false":
		return false, nil
	}
	return true, approvalWhen(raw)
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
	URL     string            `json:"url"`     // the URL, absolute, http or https
	Headers map[string]Secret `json:"headers"` // headers of each request, such as Authorization
}

// setTimeouts fills in the missing timeouts of HTTP tools.
func (c *Config) setTimeouts() {
	for name, a := range c.Agents {
		for toolName, t := range a.Tools {
			if t.HTTP != nil && t.Timeout == 0 && !c.isSet(join("agents", name, "tools", toolName, "timeout")) {
				t.Timeout = defaultHTTPTimeout
				a.Tools[toolName] = t
			}
		}
	}
}
