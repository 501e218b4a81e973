package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog/fact"
)

// Turn is one answer of the model: its parts are sent in the order of the
// fields.
type Turn struct {
	Reasoning string `json:"reasoning,omitempty" yaml:"reasoning,omitempty"`
	Text      string `json:"text,omitempty" yaml:"text,omitempty"`
	ToolCalls []Call `json:"toolCalls,omitempty" yaml:"toolCalls,omitempty"`

	// StopReason, if empty, is tool_use beside tool calls and end_turn
	// otherwise.
	StopReason fact.StopReason `json:"stopReason,omitempty" yaml:"stopReason,omitempty"`
	// Usage is reported as it is, but for a Total of 0, which becomes the sum.
	Usage fact.TokenUsage `json:"usage,omitzero" yaml:"usage,omitempty"`

	// Err fails the call once the parts are sent. The turn is chosen by the
	// conversation, so each further attempt fails, too. A script in a file has
	// none.
	Err *model.Error `json:"-" yaml:"-"`
}

// Call is a tool call.
type Call struct {
	ID   string `json:"id,omitempty" yaml:"id,omitempty"` // empty: call_<turn>_<position>, both from 0
	Name string `json:"name" yaml:"name"`
	// Arguments are sent byte for byte, JSON or not; nil means {}.
	Arguments json.RawMessage `json:"arguments,omitempty" yaml:"arguments,omitempty"`
}

// UnmarshalYAML reads a call whose arguments are YAML.
func (c *Call) UnmarshalYAML(decode func(any) error) error {
	var in struct {
		ID        string `yaml:"id"`
		Name      string `yaml:"name"`
		Arguments any    `yaml:"arguments"`
	}
	if err := decode(&in); err != nil {
		return err
	}
	*c = Call{ID: in.ID, Name: in.Name}
	if in.Arguments == nil {
		return nil
	}
	arguments, err := json.Marshal(in.Arguments)
	if err != nil {
		return fmt.Errorf("arguments of the call of %q: %w", in.Name, err)
	}
	c.Arguments = arguments
	return nil
}
