package worklist

import (
	"encoding/json"
	"errors"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// beat is how often a node says that it lives.
	beat = 500 * time.Millisecond
	// suspectAfter is after what silence a node is asked whether it lives, and
	// is dead if its connection has gone, too. A connection that was only cut
	// comes back sooner.
	suspectAfter = 1500 * time.Millisecond
	// deadAfter is after what silence a node is dead that does not answer,
	// though its connection may be there.
	deadAfter = 2500 * time.Millisecond
)

// word is what a node says of itself, on helix.node.all.
type word struct {
	Node     string   `json:"node"`
	Instance string   `json:"instance"` // distinguishes two processes of one name
	Agents   []string `json:"agents"`
	State    state    `json:"state"`
	Driven   *int     `json:"driven,omitempty"` // trees; nil: an older version, which does not say so
}

type state string

const (
	stateHello   state = "hello" // has begun, and asks which nodes are up
	stateHere    state = "here"
	stateLeaving state = "leaving" // takes nothing up any more
	stateGone    state = "gone"    // drives nothing any more
)

// peer is another node that lives.
type peer struct {
	agents  []string
	heard   time.Time
	leaving bool
	driven  int  // trees, as it said last; -1: not known
	asked   bool // whether it lives; the answer is not there yet
	handed  handed
}

// publish announces this node to all others.
func (l *Worklist) publish(s state) {
	l.mu.Lock()
	gone := l.gone
	if l.gone = gone || s == stateGone; l.leaving && s != stateGone {
		s = stateLeaving
	}
	l.mu.Unlock()
	if gone {
		return
	}
	driven := l.loop.Load()
	l.said.Store(int64(driven))
	text, _ := json.Marshal(word{Node: l.opts.Node, Instance: l.instance, Agents: l.loop.AgentTypes(), State: s, Driven: &driven})
	if err := l.nc.Publish(allSubject, text); err != nil && !l.nc.IsClosed() {
		l.opts.Logger.Warn("can't announce this node to the others", "error", err)
	}
}

// hear records a node's announcement.
func (l *Worklist) hear(m *nats.Msg) {
	var w word
	if json.Unmarshal(m.Data, &w) != nil || w.Node == "" {
		return
	}
	if w.State == stateHello && w.Node != l.opts.Node {
		defer l.publish(stateHere)
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case w.Node == l.opts.Node && w.Instance != l.instance:
		l.opts.Logger.Error("two processes have one node name: their runs are not safe from each other", "node", w.Node)
	case w.Node == l.opts.Node:
		if now.Sub(l.heard) > suspectAfter { // others may have been heard no more than this one
			for _, p := range l.peers {
				p.heard = now
			}
		}
		l.heard = now
	case w.State == stateGone:
		delete(l.peers, w.Node)
		l.lookSoon()
	default:
		p := l.peers[w.Node]
		if p == nil {
			p = &peer{}
			l.peers[w.Node] = p
		}
		if leaving := w.State == stateLeaving; leaving && !p.leaving {
			l.lookSoon()
		}
		p.agents, p.heard, p.leaving, p.driven = w.Agents, now, w.State == stateLeaving, -1
		if w.Driven != nil {
			p.driven = *w.Driven
		}
	}
}

// judge finds nodes that have died. A node that does not even receive its own announcements
// can't judge others.
func (l *Worklist) judge() {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.heard) > suspectAfter {
		return
	}
	for node, p := range l.peers {
		silent := now.Sub(p.heard)
		if silent < suspectAfter || p.asked {
			continue
		}
		p.asked = true
		l.wg.Go(func() { l.probe(node, silent > deadAfter) })
	}
}

// probe asks a silent node whether it lives. A node without any answer has
// lost its connection; one that is only slow has until deadAfter.
func (l *Worklist) probe(node string, last bool) {
	_, err := l.ask(l.ctx, node, question{})
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[node]
	if p == nil {
		return
	}
	p.asked = false
	switch {
	case err == nil:
		p.heard = time.Now()
	case time.Since(p.heard) < suspectAfter: // it has spoken meanwhile
	case last || errors.Is(err, nats.ErrNoResponders):
		l.opts.Logger.Warn("a node has died: its runs are taken up", "node", node, "silent", time.Since(p.heard))
		delete(l.peers, node)
		l.lookSoon()
	}
}

// lives reports whether a node was heard lately. One that does not answer may
// only be slow.
func (l *Worklist) lives(node string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.peers[node]
	return p != nil && time.Since(p.heard) < suspectAfter
}

// Hosted implements agentloop.Worklist.
func (l *Worklist) Hosted(agentType string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.peers {
		if p.hosts(agentType) {
			return true
		}
	}
	return false
}

// Peers returns the other nodes that live, sorted.
func (l *Worklist) Peers() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Sorted(maps.Keys(l.peers))
}

func (p *peer) hosts(agentType string) bool {
	return !p.leaving && slices.Contains(p.agents, agentType)
}

// mine reports whether it is for this node, which can, to drive a tree that
// no node holds: of the nodes that host its agent it ranks first for this tree.
func (l *Worklist) mine(t tree) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := rank(l.opts.Node, t.session)
	for node, p := range l.peers {
		if p.hosts(t.agentType) && rank(node, t.session) > own {
			return false
		}
	}
	return true
}

func rank(node, session string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(session))
	h.Write([]byte{0})
	h.Write([]byte(node))
	x := h.Sum64() // its last bytes barely reach the upper bits
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
