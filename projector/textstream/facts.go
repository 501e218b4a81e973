package textstream

import (
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// fact reads a fact. Most facts change nothing in the stream.
func (e *Encoder) fact(r eventlog.Record, f fact.Fact) {
	switch f := f.(type) {
	case *fact.SessionCreated:
		if f.Child != nil {
			e.parents[r.Agent] = f.Child.CallID
		}
	case *fact.CallSuspended:
		if _, known := e.parents[f.ChildSessionID]; !known && f.ChildSessionID != "" {
			e.parents[f.ChildSessionID] = f.ToolCallID
		}
	case *fact.ModelTurn:
		e.usage.add(f.Model, f.Usage, e.price)
		for _, p := range f.Parts {
			if p.ToolCall != nil {
				e.agent(r.Agent).call(p.ToolCall.ID).input = p.ToolCall.Arguments // it may never begin
			}
		}
	case *fact.RunEnded:
		e.endStep(e.agent(r.Agent))
		e.mayEnd(r.Agent)
	case *fact.StreamEnd, *fact.StreamFailed, *fact.StreamPaused:
		e.mayEnd(r.Agent)
	case *eventlog.Truncated:
		e.truncated(f.Ranges, r.Sequence)
	}
}

// mayEnd closes all blocks where a response can end: a block must not continue
// in the next one, and a record makes the same frames in all.
func (e *Encoder) mayEnd(agent string) {
	if agent == e.root {
		e.closeAll()
	}
}

// truncated ends the open blocks of the agents that lost records, and numbers
// their next blocks from the marker's sequence. Only some clients know the numbers
// of the truncated blocks; the sequence is greater than any of these, since each
// block has a record. Blocks that survive end first: a client that never saw the
// others gets the same frames, without the last ones. Calls and a step whose frames were made
// by truncated records are forgotten, since such a client has none of them.
func (e *Encoder) truncated(ranges []eventlog.Range, marker uint64) {
	for _, dead := range []bool{false, true} {
		for _, g := range ranges {
			e.close(e.agent(g.AgentID), func(b *block) bool {
				return dead == slices.ContainsFunc(ranges, func(of eventlog.Range) bool {
					return of.AgentID == g.AgentID && of.From <= b.since && b.since <= of.To
				})
			})
		}
	}
	for _, g := range ranges {
		a := e.agent(g.AgentID)
		a.reasoned = false
		for _, kind := range []string{kindText, kindReasoning} {
			a.next[kind] = max(a.next[kind], marker)
		}
		for _, c := range a.calls {
			c.truncated(g)
		}
		if e.step != nil && g.Covers(*e.step) {
			e.finishStep()
		}
	}
}
