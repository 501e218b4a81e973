package engine

import (
	"maps"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/internal/plan"
)

// agentSet are the agents that a loop has at one time; it is only ever
// replaced as a whole. A tree that is being driven keeps the one with which it
// was claimed.
type agentSet struct {
	defs map[string]*plan.Agent
	// Guarded by the loop's lock.
	users    int // how many trees are driven with it
	replaced bool
	unused   chan struct{} // closed when it was replaced and nobody drives with it
}

func newAgentSet(agents []agentloop.Agent) (*agentSet, error) {
	defs, err := plan.Compile(agents)
	if err != nil {
		return nil, err
	}
	return &agentSet{defs: defs, unused: make(chan struct{})}, nil
}

// SetAgents replaces all agents. Trees that are being driven go on with those
// with which they were claimed until they are at rest; all others, and those
// that other nodes hand over, have the new ones. unused is closed when nothing
// is driven with the old ones any more. An error means that one is
// ill-defined, as with New, and nothing has changed.
//
// With an [agentloop.Queue], other nodes are to be told which agents are here now: see
// queue.Queue.Rehost.
func (l *Loop) SetAgents(agents []agentloop.Agent) (unused <-chan struct{}, err error) {
	next, err := newAgentSet(agents)
	if err == nil {
		err = l.workspaces.Check(next.defs)
	}
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.agents.Swap(next)
	old.replaced = true
	old.settle()
	return old.unused, nil
}

// AgentTypes returns the names of the agents, sorted.
func (l *Loop) AgentTypes() []string {
	names := slices.AppendSeq([]string{}, maps.Keys(l.defs())) // an empty list is shown as one
	slices.Sort(names)
	return names
}

// defs are the agents of now, which must not be changed.
func (l *Loop) defs() map[string]*plan.Agent { return l.agents.Load().defs }

// useAgents keeps the agents of now until leave is called.
func (l *Loop) useAgents() (defs map[string]*plan.Agent, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.agents.Load()
	s.users++
	return s.defs, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		s.users--
		s.settle()
	}
}

// settle tells if nobody will use the set any more. The caller has the lock.
func (s *agentSet) settle() {
	if s.replaced && s.users == 0 {
		close(s.unused)
	}
}
