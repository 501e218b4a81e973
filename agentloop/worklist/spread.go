package worklist

import "time"

// leastSpread is how many trees a node drives more than another one, at least, before it
// hands one over. A handover costs a claim and a read of the session.
const leastSpread = 4

// sayLoad announces how many trees this node drives, if that has changed since the last
// beat by as much as matters to the others.
func (l *Worklist) sayLoad() {
	if l.loop == nil {
		return
	}
	if changed := int64(l.loop.Load()) - l.said.Load(); changed >= leastSpread/2 || changed <= -leastSpread/2 {
		l.publish(stateHere)
	}
}

// Lighter implements agentloop.Worklist. It spreads trees when a node has joined, or gets
// more requests than others. The difference that it leaves is a quarter of what this node
// drives, so that nodes do not hand trees to and fro.
func (l *Worklist) Lighter(agentType string, driven int) (node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.leaving || l.gone || now.Sub(l.heard) > suspectAfter { // what it knows of others is old
		return ""
	}
	var lightest *peer
	for name, p := range l.peers {
		if p.driven < 0 || !p.hosts(agentType) || now.Sub(p.heard) > suspectAfter {
			continue
		}
		if lightest == nil || p.driven < lightest.driven || p.driven == lightest.driven && name < node {
			node, lightest = name, p
		}
	}
	if lightest == nil || driven-lightest.driven <= max(leastSpread, driven/4) {
		return ""
	}
	lightest.driven++ // until it says itself how many there are
	return node
}
