package engine

import "github.com/helixd/helixd/agentloop"

// runHooks is known for the time in which this process drives the run.
type runHooks struct {
	run   string
	hooks *agentloop.Hooks
	seen  bool // the tree that is driven has looked for it
}

// attach keeps the hooks of a request until its run has been driven.
func (l *Loop) attach(session, run string, hooks *agentloop.Hooks) {
	if hooks == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requested[session] = &runHooks{run: run, hooks: hooks}
}

// detach forgets the hooks of a request that has come to nothing.
func (l *Loop) detach(session, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if kept := l.requested[session]; kept != nil && kept.run == run {
		delete(l.requested, session)
	}
}

func (l *Loop) requestHooks(session, run string) *agentloop.Hooks {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.requested[session]
	if kept == nil || kept.run != run {
		return nil
	}
	kept.seen = true
	return kept.hooks
}

// forgetRequest forgets the hooks of a run that is driven elsewhere.
func (l *Loop) forgetRequest(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.requested, session)
}

// forgetHooks forgets the hooks of a run that is not driven here any more. The
// caller holds l.mu.
func (l *Loop) forgetHooks(session string) {
	if kept := l.requested[session]; kept != nil && kept.seen {
		delete(l.requested, session)
	}
}
