package agentloop

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
)

// RemoteAgent is an agent of another agent server (document 004,
// createRemoteSubAgentTool). The call's arguments are its first message, as
// JSON. A remote agent with tools of its own that wait for a person fails.
type RemoteAgent struct {
	Name         string // of the tool, behind SubAgentPrefix
	Description  string
	Transport    remote.Transport
	AgentType    string          // on that server
	Timeout      time.Duration   // of one call, from its start; required
	InputSchema  json.RawMessage // of an object; nil: {"message": string}
	OutputSchema json.RawMessage // what the output must fit; nil: anything
	// StreamRetries is how often in a row a broken stream is picked up again,
	// at most 50; 0: 3, negative: never. StreamRetryBase is the first pause; it doubles. 0: 100 ms.
	StreamRetries   int
	StreamRetryBase time.Duration
}

// CodeRemoteClientTool: a remote agent waits for a person, which is not
// supported.
const CodeRemoteClientTool = "remote_client_tool_unsupported"

// remoteAgent is a remote agent whose schemas have been checked.
type remoteAgent struct {
	RemoteAgent
	input, output *jsonschema.Resolved
}

func (d *definition) linkRemotes() error {
	for _, r := range d.RemoteAgents {
		switch {
		case r.Transport == nil:
			return fmt.Errorf("remote agent %s: no transport", r.Name)
		case r.Timeout <= 0:
			return fmt.Errorf("remote agent %s: it needs a time-out", r.Name)
		case r.StreamRetries > 50:
			return fmt.Errorf("remote agent %s: at most 50 stream retries", r.Name)
		case eventlog.ValidateID(r.AgentType) != nil:
			return fmt.Errorf("remote agent %s: it needs an agent type", r.Name)
		}
		if r.InputSchema == nil {
			r.InputSchema = json.RawMessage(messageSchema)
		}
		checked := &remoteAgent{RemoteAgent: r}
		var err error
		if checked.input, err = resolveObject(r.InputSchema); err != nil {
			return fmt.Errorf("remote agent %s: input schema: %w", r.Name, err)
		}
		if r.OutputSchema != nil {
			if checked.output, err = resolveAny(r.OutputSchema); err != nil {
				return fmt.Errorf("remote agent %s: output schema: %w", r.Name, err)
			}
		}
		tool := SubAgentPrefix + r.Name
		if err := d.offer(tool, r.Description, r.InputSchema); err != nil {
			return err
		}
		d.remotes[tool] = checked
	}
	return nil
}
