package node

import "context"

// Drain has other nodes continue with this node's runs, each at the end of its
// step, so that nothing is generated twice; runs of agents that no other node hosts
// finish here. Requests are still taken, and their runs driven
// elsewhere. It returns when nothing is driven here any more, or with ctx. What
// is left then is for Stop, and is taken up elsewhere in mid-step.
func (n *Node) Drain(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.Draining() {
		close(n.drains)
	}
	for len(n.live) > 0 {
		left := n.left
		n.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
		}
		n.mu.Lock()
		if ctx.Err() != nil {
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

// HandsOver reports whether an agent's runs are to continue on other nodes.
func (n *Node) HandsOver(agentType string) bool {
	return n.Draining() && n.worklist != nil && n.worklist.Hosted(agentType)
}

// spread reports whether a tree should continue at another node, which is less busy and
// which keep then wakes. A run whose request has hooks stays: they are this process's.
// So does one that this node took from a node that lives, which an abort needs: no other node would.
func (n *Node) spread(session, agentType string) bool {
	if n.worklist == nil {
		return false
	}
	n.mu.Lock()
	run, driven := n.live[session], 0
	stays := run == nil || run.force || n.requested[session] != nil
	for _, other := range n.live {
		if other.to == "" {
			driven++
		}
	}
	n.mu.Unlock()
	if stays {
		return false
	}
	to := n.worklist.Lighter(agentType, driven)
	if to == "" {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	run.to = to
	return true
}

// Load is how many trees this node drives; -1 if it should get no others, since it can't
// store anything.
func (n *Node) Load() int {
	if n.host.Log.Info().Refuses != "" {
		return -1
	}
	return n.Driven()
}

// Driven is how many trees this node drives.
func (n *Node) Driven() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.live)
}
