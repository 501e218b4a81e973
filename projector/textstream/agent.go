package textstream

import "fmt"

// agent is what there is of a session of the tree in the message so far.
type agent struct {
	id     string
	prefix string            // of its blocks' ids
	next   map[string]uint64 // number of the next block, by kind
	open   []*block          // in the order of their starts
	// reasoned is set while pieces of reasoning have come whose whole has not.
	reasoned bool
	calls    map[string]*call
}

// block is text, reasoning or a tool's input that has not ended.
type block struct {
	kind     string
	id       string
	toolName string // of an input
	since    uint64 // the sequence of its first record
	here     bool   // false after Reopen: its start is not in this response
}

// The kinds of blocks, with which the types of their parts begin.
const (
	kindText      = "text"
	kindReasoning = "reasoning"
	kindInput     = "tool-input"
)

func (e *Encoder) agent(id string) *agent {
	a := e.agents[id]
	if a == nil {
		a = &agent{id: id, next: map[string]uint64{}, calls: map[string]*call{}}
		if id != e.root {
			a.prefix = id + "-"
		}
		e.agents[id] = a
	}
	return a
}

// parent is the metadata of an agent's parts: nil for the root.
func (e *Encoder) parent(a *agent) *metadata {
	if a.id == e.root {
		return nil
	}
	if call, ok := e.parents[a.id]; ok {
		return &metadata{ParentToolUseID: call}
	}
	return &metadata{ParentToolUseID: a.id}
}

// find returns an open block, or nil. Of text and reasoning there is at most
// one, whose id need not be known.
func (a *agent) find(kind, id string) *block {
	for _, b := range a.open {
		if b.kind == kind && (id == "" || b.id == id) {
			return b
		}
	}
	return nil
}

// grow continues the agent's text or reasoning, or begins it.
func (e *Encoder) grow(a *agent, kind, text string) {
	b := a.find(kind, "")
	if b == nil {
		b = &block{kind: kind, id: fmt.Sprintf("%s%s-%d", a.prefix, kind, a.next[kind]), since: e.at.Sequence}
		a.next[kind]++
		a.open = append(a.open, b)
	}
	e.announce(a, b)
	e.send(textDelta{Type: kind + "-delta", ID: b.id, Text: text, Metadata: e.parent(a)})
}

// announce sends the start of a block, unless it was sent.
func (e *Encoder) announce(a *agent, b *block) {
	if !b.here {
		b.here = true
		e.send(blockStart{Type: b.kind + "-start", ID: b.id, ToolName: b.toolName, Metadata: e.parent(a)})
	}
}

// close ends the open blocks that match. After Reopen a block without a start
// has no end either.
func (e *Encoder) close(a *agent, match func(*block) bool) {
	var open []*block
	for _, b := range a.open {
		switch {
		case !match(b):
			open = append(open, b)
		case b.here:
			e.send(blockEnd{Type: b.kind + "-end", ID: b.id, Metadata: e.parent(a)})
		}
	}
	a.open = open
}

func anyBlock(*block) bool { return true }

// prose is what another kind of content ends.
func prose(b *block) bool { return b.kind != kindInput }

func ofKind(kind string) func(*block) bool {
	return func(b *block) bool { return b.kind == kind }
}

func inputOf(call string) func(*block) bool {
	return func(b *block) bool { return b.kind == kindInput && b.id == call }
}
