package queue

import "time"

// First reports whether this node is the one of all that live, and don't leave,
// that does work which only one node has to do. For a moment, two nodes may believe that they
// are the first, for instance when one has just started; or none.
func (q *Queue) First() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leaving || q.gone || time.Since(q.heard) > suspectAfter {
		return false
	}
	for node, p := range q.peers {
		if !p.leaving && node < q.opts.Node {
			return false
		}
	}
	return true
}
