package node

import (
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/projector"
)

// requestHooks are the hooks of a request. They are known while the request is being appended,
// and while this process drives the run.
type requestHooks struct {
	run   string
	hooks *agentloop.Hooks
	begun bool // the run is in the log, and this node was asked to drive it
}

// Attach keeps the hooks of a request until its run has been driven. Requests for a session
// that come at once are kept beside each other: the log decides which run there will be.
func (n *Node) Attach(session, run string, hooks *agentloop.Hooks) {
	if hooks == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requested[session] = append(n.requested[session], &requestHooks{run: run, hooks: hooks})
}

// Detach forgets the hooks of a request that has come to nothing.
func (n *Node) Detach(session, run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(session, func(kept *requestHooks) bool { return kept.run == run })
}

func (n *Node) requestHooks(session, run string) *agentloop.Hooks {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, kept := range n.requested[session] {
		if kept.run == run {
			return kept.hooks
		}
	}
	return nil
}

// ForgetRequests forgets the hooks of the runs of a tree that is driven elsewhere.
func (n *Node) ForgetRequests(t *projector.Tree) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(t.SessionID, func(kept *requestHooks) bool { return t.RunOf(kept.run) != nil })
}

// begin notes which requests' runs are in the log, and forgets the hooks of earlier ones. The
// caller holds n.mu.
func (n *Node) begin(t *projector.Tree) {
	current := t.CurrentRun()
	n.forget(t.SessionID, func(kept *requestHooks) bool {
		kept.begun = kept.begun || t.RunOf(kept.run) != nil
		return kept.begun && current != nil && kept.run != current.RunID
	})
}

// forgetBegun forgets the hooks of runs that are not driven here any more. The
// caller holds n.mu.
func (n *Node) forgetBegun(session string) {
	n.forget(session, func(kept *requestHooks) bool { return kept.begun })
}

// forget forgets some of a session's hooks. The caller holds n.mu.
func (n *Node) forget(session string, which func(*requestHooks) bool) {
	n.requested[session] = slices.DeleteFunc(n.requested[session], which)
	if len(n.requested[session]) == 0 {
		delete(n.requested, session)
	}
}
