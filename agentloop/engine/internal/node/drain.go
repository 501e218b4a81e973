package node

import "context"

// Drain has other nodes continue with this node's runs, each at the end of its
// step, so that nothing is generated twice; runs of agents that no other node hosts
// finish here. Requests are still taken, and their runs driven
// elsewhere. It returns when nothing is driven here any more, or with ctx. What
// is left then is for Stop, and is taken up elsewhere in mid-step.
func (n *Node) Drain(ctx context.Context) {
	n.mu.Lock()
	if !n.Draining() {
		close(n.drains)
	}
	n.mu.Unlock()
	for n.driven() > 0 {
		select {
		case <-n.left:
		case <-ctx.Done():
			return
		}
	}
}

// Draining reports whether Drain was called.
func (n *Node) Draining() bool {
	select {
	case <-n.drains:
		return true
	default:
		return false
	}
}

// HandsOver reports whether an agent's runs shall continue elsewhere.
func (n *Node) HandsOver(agentType string) bool {
	return n.Draining() && n.worklist != nil && n.worklist.Hosted(agentType)
}

func (n *Node) driven() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.live)
}
