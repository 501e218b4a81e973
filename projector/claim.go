package projector

import (
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Claim is the last claim of the tree.
type Claim struct {
	Writer   string `json:"writer"`
	RunID    string `json:"runId"`
	Node     string `json:"node"`
	Attempt  int    `json:"attempt"`
	Sequence uint64 `json:"sequence"`
	// Spoke: text of a model was recorded under the claim, or the claim lasted for a
	// while. Progress: a record has advanced a run, or the writer has released the tree.
	Spoke    bool `json:"spoke,omitempty"`
	Progress bool `json:"progress,omitempty"`
	// Silent and Fruitless count the nodes that lost the tree since a record last
	// advanced a run: Silent before text of a model was recorded, Fruitless after. A node
	// that dies of the tree leaves nothing but its claim.
	Silent    int `json:"silent,omitempty"`
	Fruitless int `json:"fruitless,omitempty"`
}

// The fields of a claim that only fences other writers (see eventlog.Rollback).
const (
	fenceNode   = "rollback"
	fencePrefix = "rollback-"
)

// Fences reports whether the claim only fences other writers, as that of a rollback: no node
// drives the tree under it.
func (c *Claim) Fences() bool {
	return c.Node == fenceNode && strings.HasPrefix(c.RunID, fencePrefix)
}

func (t *Tree) claimed(r eventlog.Record, f *fact.RunClaimed) {
	c := &Claim{Writer: r.Writer, RunID: f.RunID, Node: f.Node, Attempt: f.Attempt, Sequence: r.Sequence}
	if last := t.Claim; last != nil {
		c.Silent, c.Fruitless = last.Silent, last.Fruitless
		switch {
		case last.Node == f.Node, last.Progress: // the node did not die of the tree
		case last.Spoke: // the tree does not end its node at once
			c.Silent = 0
			c.Fruitless++
		default:
			c.Silent++
		}
	}
	t.Claim = c
}

// progress records in the claim that a run has advanced, if the fact shows it.
func (t *Tree) progress(f fact.Fact) {
	switch f.(type) {
	case *fact.ModelTurn, *fact.ToolResult, *fact.CallSuspended, *fact.ResultSubmitted,
		*fact.RunRequested, *fact.RunEnded, *fact.RemoteProgress:
	default:
		return
	}
	if t.Claim != nil && (!t.Claim.Progress || t.Claim.Silent+t.Claim.Fruitless > 0) {
		c := *t.Claim
		c.Silent, c.Fruitless, c.Progress = 0, 0, true
		t.Claim = &c
	}
}

// settled records that the tree did not cause the end of a claim.
func (t *Tree) settled(r eventlog.Record, f *fact.ClaimSettled) {
	if t.Claim == nil || t.Claim.Writer != r.Writer {
		return
	}
	c := *t.Claim
	c.Spoke = true
	c.Progress = c.Progress || f.How == fact.ClaimReleased
	t.Claim = &c
}

// spoken records that text of a model was recorded.
func (t *Tree) spoken(r eventlog.Record) {
	if t.Claim == nil || t.Claim.Spoke || t.Claim.Writer != r.Writer {
		return
	}
	switch r.Type {
	case (*eventlog.TextDelta)(nil).Type(), (*eventlog.Thinking)(nil).Type(), (*eventlog.ToolArgStreamDelta)(nil).Type():
		c := *t.Claim
		c.Spoke = true
		t.Claim = &c
	}
}
