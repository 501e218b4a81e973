package agentloop

import (
	"encoding/json"
	"time"

	"github.com/helixd/helixd/agentloop/remote"
)

// SubAgentPrefix begins the names of the tools that hand a task to another
// agent.
const SubAgentPrefix = "subagent__"

// MaxDepth is how many ancestors a sub-agent may have.
const MaxDepth = 8

// SubAgent is an ephemeral sub-agent: each call is a session of
// its own, within the caller's tree, whose output is the call's result.
type SubAgent struct {
	Agent       string        // an agent of the same loop
	Description string        // for the model; empty: the agent's own
	Timeout     time.Duration // of one call, from its start; 0: none
}

// CompanionPrefix begins the names of the tools by which a model deals with
// its persistent sub-agents.
const CompanionPrefix = "companion__"

// PersistentAgent is a sub-agent that keeps its session and can be talked to
// again.
type PersistentAgent struct {
	Agent       string // an agent of the same loop
	Mode        PersistentMode
	Description string // for the model; empty: the agent's own
}

// PersistentMode says whether the parent waits for a sub-agent's turn.
type PersistentMode string

// Modes of persistent sub-agents.
const (
	Blocking    PersistentMode = "blocking"
	NonBlocking PersistentMode = "non-blocking"
)

// RemoteAgent is an agent of another agent server. The call's arguments are its first message, as
// JSON. A remote agent with its own tools that wait for a person fails.
type RemoteAgent struct {
	Name         string // of the tool, after SubAgentPrefix
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
