package agentloop

import (
	"context"
	"encoding/json"
)

// Worklist is the work list of session trees that may have work, which all nodes share, and the
// announcements of the nodes. Package worklist implements it.
//
// A tree is put on the list before the records are appended that give it work,
// and taken off when it is idle: a node may die between any two of these
// steps, and the tree is still found. The list is a hint. The log
// decides what must be done, and by which node.
type Worklist interface {
	// Announce puts a tree on the list, durably, and returns its ticket.
	Announce(ctx context.Context, agentType, session string) (ticket uint64, err error)
	// Remove takes tickets off the list. Errors: eventlog.ErrOutcomeUnknown.
	Remove(ctx context.Context, tickets []uint64) error
	// Forget takes a session off the list whose log was erased. Errors:
	// eventlog.ErrOutcomeUnknown.
	Forget(ctx context.Context, session string) error
	// Holds asks a node whether it drives the session. One that does looks at
	// the session's log once more before it releases the tree, and takes over the
	// ticket, unless that is 0. One that does not answer, but was heard lately,
	// is taken to drive it.
	Holds(ctx context.Context, node, session string, ticket uint64) bool
	// Wake asks a node to take the tree up now, or if node is empty any one that hosts the
	// agent. If none has taken it up a second later, this node does, or wakes others again.
	Wake(node, agentType, session string)
	// Lighter returns a node that hosts the agent and drives so much fewer trees than this
	// one, which drives that many, that it should get one of them; empty: none. It
	// counts the tree as the other node's from then on.
	Lighter(agentType string, driven int) (node string)
	// Agent asks for the initial state of an agent that another node hosts;
	// false: none does. eventlog.ErrUnavailable: one does, and does not answer.
	Agent(ctx context.Context, agentType string) (initial json.RawMessage, hosted bool, err error)
	// Hosted reports whether another node hosts the agent and drives trees.
	Hosted(agentType string) bool
}
