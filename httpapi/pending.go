package httpapi

import "github.com/helixd/helixd/projector"

// PendingToolCall is a call that waits for a person (facts 2.2): what POST
// /submit-tool-result answers, under the root's session id.
type PendingToolCall = projector.PendingCall

// pendingCalls returns the calls of the tree that wait and have no answer.
func pendingCalls(t *projector.Tree) []PendingToolCall {
	calls := []PendingToolCall{}
	for _, a := range t.AwaitedCalls() {
		calls = append(calls, a.Show())
	}
	return calls
}
