package projector

import (
	"iter"
	"maps"
	"slices"
)

// Get returns the session of the tree with the given id, or nil.
func (t *Tree) Get(id string) *Session {
	if id == t.SessionID {
		return &t.Session
	}
	return t.Children[id]
}

// Sessions returns the root and its sub-agents' sessions, in a fixed order.
func (t *Tree) Sessions() []*Session {
	all := []*Session{&t.Session}
	for _, id := range slices.Sorted(maps.Keys(t.Children)) {
		if s := t.Children[id]; s != nil { // a damaged state may have null there
			all = append(all, s)
		}
	}
	return all
}

// ChildrenOf returns the sub-agents' sessions of a session, in a fixed order. It leaves
// out those that have begun no turn, and those that a rollback has removed.
func (t *Tree) ChildrenOf(id string) []*Session {
	var children []*Session
	for _, s := range t.Sessions() {
		if s.Child != nil && s.Child.ParentSessionID == id && (s.TurnCount > 0 || s.Child.Remote) {
			children = append(children, s)
		}
	}
	return children
}

// Depth returns how many ancestors a session has.
func (t *Tree) Depth(id string) int {
	n := 0
	for s := t.Get(id); s != nil && s.Child != nil && n <= len(t.Children); s = t.Get(s.Child.ParentSessionID) {
		n++
	}
	return n
}

// CallIDs yields the ids of calls that are in use in the tree, or were before a rollback.
func (t *Tree) CallIDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range t.Sessions() {
			if !s.callIDs(yield) {
				return
			}
		}
	}
}

// HasCall reports whether a call id is one of CallIDs.
func (t *Tree) HasCall(id string) bool {
	for has := range t.CallIDs() {
		if has == id {
			return true
		}
	}
	return false
}

// OpenCall returns the call with the given id if it belongs to an open step,
// and the session that owns it.
func (t *Tree) OpenCall(id string) (*Session, *Call) {
	for _, s := range t.Sessions() {
		if s.Turn == nil || s.Turn.Step == nil {
			continue
		}
		if c := s.Turn.Step.call(id); c != nil {
			return s, c
		}
	}
	return nil, nil
}

// AwaitedCalls returns the calls of the tree that wait for a person and have
// no answer yet, by the session that owns them.
func (t *Tree) AwaitedCalls() []Awaited {
	var all []Awaited
	for s, c := range t.OpenCalls() {
		if c.Awaited() {
			all = append(all, Awaited{Session: s, Call: c})
		}
	}
	return all
}

// OpenCalls yields the calls of the tree's open steps, by the session that owns them.
func (t *Tree) OpenCalls() iter.Seq2[*Session, *Call] {
	return func(yield func(*Session, *Call) bool) {
		for _, s := range t.Sessions() {
			for c := range s.OpenCalls() {
				if !yield(s, c) {
					return
				}
			}
		}
	}
}

// Awaited is a call that waits for a person.
type Awaited struct {
	Session *Session
	Call    *Call
}
