package engine

import (
	"context"
	"encoding/json"

	"github.com/helixd/helixd/projector"
)

// InitialState returns the initial state of an agent that this node hosts.
func (l *Loop) InitialState(agentType string) (state json.RawMessage, hosted bool) {
	def := l.agents.Defs()[agentType]
	if def == nil {
		return nil, false
	}
	return def.InitialState, true
}

// Executing reports whether the root's run continues: it is open, and a node
// drives it.
func (l *Loop) Executing(ctx context.Context, t *projector.Tree) bool {
	return l.node.Executing(ctx, t)
}
