package inspect

import (
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// pendingCalls returns the calls of the tree that wait for an answer.
func pendingCalls(t *projector.Tree) []api.PendingToolCall {
	calls := []api.PendingToolCall{}
	for _, a := range t.AwaitedCalls() {
		calls = append(calls, a.Show())
	}
	return calls
}
