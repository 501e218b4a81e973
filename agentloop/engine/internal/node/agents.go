package node

import (
	"sync"
	"sync/atomic"

	"github.com/helixd/helixd/agentloop/internal/plan"
)

// agentSet are the agents that a node has at one time; it is only ever
// replaced as a whole. A tree that is being driven keeps the one with which it
// was claimed.
type agentSet struct {
	defs map[string]*plan.Agent
	// Guarded by the lock of agents.
	users    int // how many trees are driven with it
	replaced bool
	unused   chan struct{} // closed when it was replaced and no tree is driven with it
}

// Agents are those that the node has now.
type Agents struct {
	mu  sync.Mutex
	now atomic.Pointer[agentSet]
}

func NewAgents(defs map[string]*plan.Agent) *Agents {
	a := new(Agents)
	a.now.Store(&agentSet{defs: defs, unused: make(chan struct{})})
	return a
}

func (a *Agents) Defs() map[string]*plan.Agent { return a.now.Load().defs }

// Replace replaces all agents. unused is closed when nothing is driven with the old
// ones any more.
func (a *Agents) Replace(defs map[string]*plan.Agent) (unused <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.now.Swap(&agentSet{defs: defs, unused: make(chan struct{})})
	old.replaced = true
	old.settle()
	return old.unused
}

// use keeps the agents of now until leave is called.
func (a *Agents) use() (defs map[string]*plan.Agent, leave func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.now.Load()
	s.users++
	return s.defs, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		s.users--
		s.settle()
	}
}

// settle closes unused if the set will not be used any more. The caller has the lock.
func (s *agentSet) settle() {
	if s.replaced && s.users == 0 {
		close(s.unused)
	}
}
