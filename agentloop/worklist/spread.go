package worklist

import "time"

// leastSpread is how many trees a node drives more than another one, at least, before it
// hands one over. A handover costs a claim and a read of the session.
const leastSpread = 4

// sayLoad announces how many trees this node drives, if that has changed since its last
// word by as much as matters to the others.
func (l *Worklist) sayLoad() {
	if l.loop == nil {
		return
	}
	if changed := int64(l.loop.Load()) - l.said.Load(); changed >= leastSpread/2 || changed <= -leastSpread/2 {
		l.publish(stateHere)
	}
}

// handed are the trees that this node has handed over to a peer and that the peer may not have
// counted yet.
type handed struct {
	trees int
	since int       // how many the peer drove when it got the first of them
	last  time.Time // when it got the last one
}

// uncounted returns how many of the trees the peer may not have counted. If it drives more trees
// than it did, each of the givers has its part in that. A beat later it has counted all.
func (p *peer) uncounted(givers int, now time.Time) int {
	if now.Sub(p.handed.last) > beat {
		return 0
	}
	return max(p.handed.trees-max(p.driven-p.handed.since, 0)/givers, 0)
}

// Lighter implements agentloop.Worklist. It spreads trees when a node has joined, or gets
// more requests than others. The difference that it leaves is a quarter of what this node
// drives, so that nodes do not hand trees to and fro. Other nodes hand trees over at the same time:
// a node hands over no more than its part of the difference until the peer has counted them.
func (l *Worklist) Lighter(agentType string, driven int) (node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.leaving || l.gone || now.Sub(l.heard) > suspectAfter { // what it knows of others is old
		return ""
	}
	givers := 0 // of the nodes that host the agent, all but the lightest
	for _, p := range l.peers {
		if p.hosts(agentType) {
			givers++
		}
	}
	var lightest *peer
	least := 0
	for name, p := range l.peers {
		if p.driven < 0 || !p.hosts(agentType) || now.Sub(p.heard) > suspectAfter {
			continue
		}
		drives := p.driven + p.uncounted(givers, now)
		if lightest == nil || drives < least || drives == least && name < node {
			node, lightest, least = name, p, drives
		}
	}
	if lightest == nil || driven-least <= max(leastSpread, driven/4) {
		return ""
	}
	uncounted := least - lightest.driven
	if part := (driven + uncounted - lightest.driven) / (givers + 1); uncounted >= max(part, 1) {
		return ""
	}
	if uncounted == 0 {
		lightest.handed = handed{since: lightest.driven}
	}
	lightest.handed.trees++
	lightest.handed.last = now
	return node
}
