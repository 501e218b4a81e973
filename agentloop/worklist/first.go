package worklist

import "time"

// First reports whether this node is the one of all that live, and don't leave,
// that does work which only one node has to do. For a moment, two nodes may believe that they
// are the first, for instance when one has just started; or none.
func (l *Worklist) First() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving || l.gone || time.Since(l.heard) > suspectAfter {
		return false
	}
	for node, p := range l.peers {
		if !p.leaving && node < l.opts.Node {
			return false
		}
	}
	return true
}
