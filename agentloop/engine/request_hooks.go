package engine

import "github.com/helixd/helixd/agentloop"

// runHooks is known for the time in which this process drives the run.
type runHooks struct {
	run   string
	hooks *agentloop.Hooks
	seen  bool // the tree that is driven has looked for it
}

// attach keeps the hooks of a request until its run has been driven.
func (n *node) attach(session, run string, hooks *agentloop.Hooks) {
	if hooks == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.requested[session] = &runHooks{run: run, hooks: hooks}
}

// detach forgets the hooks of a request that has come to nothing.
func (n *node) detach(session, run string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept := n.requested[session]; kept != nil && kept.run == run {
		delete(n.requested, session)
	}
}

func (n *node) requestHooks(session, run string) *agentloop.Hooks {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.requested[session]
	if kept == nil || kept.run != run {
		return nil
	}
	kept.seen = true
	return kept.hooks
}

// forgetRequest forgets the hooks of a run that is driven elsewhere.
func (n *node) forgetRequest(session string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.requested, session)
}

// forgetHooks forgets the hooks of a run that is not driven here any more. The
// caller holds n.mu.
func (n *node) forgetHooks(session string) {
	if kept := n.requested[session]; kept != nil && kept.seen {
		delete(n.requested, session)
	}
}
