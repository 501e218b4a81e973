package engine

import "context"

// Drain has other nodes go on with this node's runs, each at the end of its
// step, so that nothing is said twice; runs of agents that nobody else hosts
// come to their end here. Requests are still taken, and their runs driven
// elsewhere. It returns when nothing is driven here any more, or with ctx. What
// is left then is for Stop, and is taken up elsewhere in mid-step.
func (l *Loop) Drain(ctx context.Context) {
	l.mu.Lock()
	if !l.Draining() {
		close(l.drains)
	}
	l.mu.Unlock()
	for l.driven() > 0 {
		select {
		case <-l.left:
		case <-ctx.Done():
			return
		}
	}
}

// Draining reports whether Drain was called.
func (l *Loop) Draining() bool {
	select {
	case <-l.drains:
		return true
	default:
		return false
	}
}

// leaves reports whether an agent's runs shall go on elsewhere.
func (l *Loop) leaves(agentType string) bool {
	return l.Draining() && l.opts.Queue != nil && l.opts.Queue.Hosted(agentType)
}

func (l *Loop) driven() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.live)
}
