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
		e.usage.add(f.Model, f.Usage, e.price)
		for _, p := range f.Parts {
			if p.ToolCall != nil {
				e.agent(r.Agent).call(p.ToolCall.ID).input = p.ToolCall.Arguments // it may never begin
			}
		}
	case *eventlog.RunEnded:
		e.endStep(e.agent(r.Agent))
		e.mayEnd(r.Agent)
	case *eventlog.StreamEnd, *eventlog.StreamFailed, *eventlog.StreamPaused:
		e.mayEnd(r.Agent)
	case *eventlog.Truncated:
		for _, g := range f.Ranges {
			e.strike(e.agent(g.AgentID), r.Sequence)
		}
	}
}

// mayEnd closes all blocks where a response can end: a block must not continue
// in the next one, and a record makes the same frames in all.
func (e *Encoder) mayEnd(agent string) {
	if agent == e.root {
		e.closeAll()
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
