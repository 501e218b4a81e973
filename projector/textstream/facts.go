package textstream

import "github.com/helixd/helixd/eventlog"

// fact takes note of a fact. Most say nothing that the stream shows.
func (e *Encoder) fact(r eventlog.Record, f eventlog.Fact) {
	switch f := f.(type) {
	case *eventlog.SessionCreated:
		if f.Child != nil {
			e.parents[r.Agent] = f.Child.CallID
		}
	case *eventlog.CallSuspended:
		if _, known := e.parents[f.ChildSessionID]; !known && f.ChildSessionID != "" {
			e.parents[f.ChildSessionID] = f.ToolCallID
		}
	case *eventlog.ModelTurn:
		e.usage.add(f.Usage)
		for _, p := range f.Parts {
			if p.ToolCall != nil {
				e.agent(r.Agent).call(p.ToolCall.ID).input = p.ToolCall.Arguments // it may never begin
			}
		}
	case *eventlog.RunEnded:
		e.runEnded(r.Agent)
	case *eventlog.RunRequested, *eventlog.RunClaimed:
		if e.over && r.Agent == e.root {
			e.endStep(e.agent(e.root))
		}
	case *eventlog.Truncated:
		for _, g := range f.Ranges {
			e.strike(e.agent(g.AgentID), r.Sequence)
		}
	}
}

// runEnded ends what a sub-agent's run has left open. With the root's run the
// response ends, and a client that has this record has had the end; or the
// response goes on with the next run, and what is open ends there.
func (e *Encoder) runEnded(agent string) {
	if e.seen || agent != e.root {
		e.endStep(e.agent(agent))
	} else {
		e.over = true
	}
}

// strike ends what was open of what is struck. The numbers of blocks that were
// struck are known to those only who saw them; the marker's sequence is beyond
// them, since each block has had a record.
func (e *Encoder) strike(a *agent, marker uint64) {
	e.close(a, anyBlock)
	a.reasoned = false
	for _, kind := range []string{kindText, kindReasoning} {
		a.next[kind] = max(a.next[kind], marker)
	}
}
