package node

import "github.com/helixd/helixd/agentloop"

// requestHooks is known for the time in which this process drives the run.
type requestHooks struct {
	run   string
	hooks *agentloop.Hooks
	seen  bool // the tree that is driven has looked for it
}

// Attach keeps the hooks of a request until its run has been driven.
func (n *Node) Attach(session, run string, hooks *agentloop.Hooks) {
	if hooks == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requested[session] = &requestHooks{run: run, hooks: hooks}
}

// Detach forgets the hooks of a request that has come to nothing.
func (n *Node) Detach(session, run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept := n.requested[session]; kept != nil && kept.run == run {
		delete(n.requested, session)
	}
}

func (n *Node) requestHooks(session, run string) *agentloop.Hooks {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.requested[session]
	if kept == nil || kept.run != run {
		return nil
	}
	kept.seen = true
	return kept.hooks
}

// ForgetRequest forgets the hooks of a run that is driven elsewhere.
func (n *Node) ForgetRequest(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.requested, session)
}

// forgetHooks forgets the hooks of a run that is not driven here any more. The
// caller holds n.mu.
func (n *Node) forgetHooks(session string) {
	if kept := n.requested[session]; kept != nil && kept.seen {
		delete(n.requested, session)
	}
}
