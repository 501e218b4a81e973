package queue

import "time"

// First reports whether this node is the one of all that live, and don't leave,
// that does what only one has to. Two may take themselves for it for a moment,
// as when one has just begun; so may none.
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
