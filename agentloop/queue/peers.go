package queue

import (
	"encoding/json"
	"errors"
	"hash/fnv"
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
	Instance string   `json:"instance"` // tells two processes of one name apart
	Agents   []string `json:"agents"`
	State    state    `json:"state"`
}

type state string

const (
	stateHello   state = "hello" // has begun, and asks who is there
	stateHere    state = "here"
	stateLeaving state = "leaving" // takes nothing up any more
	stateGone    state = "gone"    // drives nothing any more
)

// peer is another node that lives.
type peer struct {
	agents  []string
	heard   time.Time
	leaving bool
	asked   bool // whether it lives; the answer is not there yet
}

// say announces this node to all others.
func (q *Queue) say(s state) {
	q.mu.Lock()
	gone := q.gone
	if q.gone = gone || s == stateGone; q.leaving && s != stateGone {
		s = stateLeaving
	}
	q.mu.Unlock()
	if gone {
		return
	}
	text, _ := json.Marshal(word{Node: q.opts.Node, Instance: q.instance, Agents: q.loop.AgentTypes(), State: s})
	if err := q.nc.Publish(allSubject, text); err != nil && !q.nc.IsClosed() {
		q.opts.Logger.Warn("can't announce this node to the others", "error", err)
	}
}

// hear records a node's announcement.
func (q *Queue) hear(m *nats.Msg) {
	var w word
	if json.Unmarshal(m.Data, &w) != nil || w.Node == "" {
		return
	}
	if w.State == stateHello && w.Node != q.opts.Node {
		defer q.say(stateHere)
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case w.Node == q.opts.Node && w.Instance != q.instance:
		q.opts.Logger.Error("two processes have one node name: their runs are not safe from each other", "node", w.Node)
	case w.Node == q.opts.Node:
		if now.Sub(q.heard) > suspectAfter { // others may have been heard no more than this one
			for _, p := range q.peers {
				p.heard = now
			}
		}
		q.heard = now
	case w.State == stateGone:
		delete(q.peers, w.Node)
		q.lookSoon()
	default:
		p := q.peers[w.Node]
		if p == nil {
			p = &peer{}
			q.peers[w.Node] = p
		}
		if leaving := w.State == stateLeaving; leaving && !p.leaving {
			q.lookSoon()
		}
		p.agents, p.heard, p.leaving = w.Agents, now, w.State == stateLeaving
	}
}

// judge finds nodes that have died. A node that does not even receive its own announcements
// can't judge others.
func (q *Queue) judge() {
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.heard) > suspectAfter {
		return
	}
	for node, p := range q.peers {
		silent := now.Sub(p.heard)
		if silent < suspectAfter || p.asked {
			continue
		}
		p.asked = true
		q.wg.Go(func() { q.probe(node, silent > deadAfter) })
	}
}

// probe asks a silent node whether it lives. A node without any answer has
// lost its connection; one that is only slow has until deadAfter.
func (q *Queue) probe(node string, last bool) {
	_, err := q.ask(q.ctx, node, question{})
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.peers[node]
	if p == nil {
		return
	}
	p.asked = false
	switch {
	case err == nil:
		p.heard = time.Now()
	case time.Since(p.heard) < suspectAfter: // it has spoken meanwhile
	case last || errors.Is(err, nats.ErrNoResponders):
		q.opts.Logger.Warn("a node has died: its runs are taken up", "node", node, "silent", time.Since(p.heard))
		delete(q.peers, node)
		q.lookSoon()
	}
}

// lives reports whether a node was heard lately. One that does not answer may
// only be slow.
func (q *Queue) lives(node string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.peers[node]
	return p != nil && time.Since(p.heard) < suspectAfter
}

// Hosted implements agentloop.Queue.
func (q *Queue) Hosted(agentType string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.peers {
		if p.hosts(agentType) {
			return true
		}
	}
	return false
}

// Peers returns the other nodes that live, sorted.
func (q *Queue) Peers() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	nodes := make([]string, 0, len(q.peers))
	for node := range q.peers {
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	return nodes
}

func (p *peer) hosts(agentType string) bool {
	return !p.leaving && slices.Contains(p.agents, agentType)
}

// mine reports whether it is for this node, which can, to drive a tree that
// no node holds: of the nodes that host its agent it ranks first for this tree.
func (q *Queue) mine(t tree) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	own := rank(q.opts.Node, t.session)
	for node, p := range q.peers {
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
