package projector

import "github.com/helixd/helixd/eventlog"

// Claim says who holds the tree, or held it last.
type Claim struct {
	Writer   string `json:"writer"`
	RunID    string `json:"runId"`
	Node     string `json:"node"`
	Attempt  int    `json:"attempt"`
	Sequence uint64 `json:"sequence"`
	// Barren is how many nodes have claimed the tree in a row, this one
	// included, since anything was recorded that brings a run on. One that dies
	// of what it does leaves nothing but its claim.
	Barren int `json:"barren,omitempty"`
}

func (t *Tree) claimed(r eventlog.Record, f *eventlog.RunClaimed) {
	c := &Claim{Writer: r.Writer, RunID: f.RunID, Node: f.Node, Attempt: f.Attempt, Sequence: r.Sequence, Barren: 1}
	if last := t.Claim; last != nil && last.Barren > 0 {
		c.Barren = last.Barren
		if last.Node != f.Node { // one that only claims it again has not died
			c.Barren++
		}
	}
	t.Claim = c
}

// progress notes what brings a run on.
func (t *Tree) progress(f eventlog.Fact) {
	if t.Claim == nil || t.Claim.Barren == 0 {
		return
	}
	switch f.(type) {
	case *eventlog.ModelTurn, *eventlog.ToolResult, *eventlog.CallSuspended, *eventlog.ResultSubmitted,
		*eventlog.RunRequested, *eventlog.RunEnded, *eventlog.RemoteProgress:
		c := *t.Claim
		c.Barren = 0
		t.Claim = &c
	}
}
