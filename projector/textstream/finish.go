package textstream

import (
	"math"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/uimessage"
)

// usage counts the tokens of a message's model turns, in the whole tree.
type usage struct {
	input, output int64
	cost          float64
	turns         int
	unpriced      bool // the cost of some is not known
}

func (u *usage) add(model string, t fact.TokenUsage, price func(string, fact.TokenUsage) (float64, bool)) {
	u.input += t.Prompt
	u.output += t.Completion
	u.turns++
	cost, known := 0.0, price != nil
	if known {
		cost, known = price(model, t)
	}
	u.cost += cost
	u.unpriced = u.unpriced || !known
}

// costs returns the cost, nil if it is not known.
func (u *usage) costs() *float64 {
	if u.turns == 0 || u.unpriced || math.IsInf(u.cost, 0) { // which JSON can't hold
		return nil
	}
	return &u.cost
}

// note remembers when the root's chunks were stored. The first one that counts is
// content, which begins the message: chunks of the run's life before it, such as
// run_resumed, are not in every response.
func (e *Encoder) note(r eventlog.Record) {
	if r.Kind != eventlog.KindChunk || r.Agent != e.root {
		return
	}
	if e.first.IsZero() && !eventlog.ScopeContent.Truncates(r.Envelope) {
		return
	}
	at := r.Time
	if r.Origin != (eventlog.Origin{}) { // imported: where it was written
		at = r.Origin.Time
	}
	if e.first.IsZero() {
		e.first = at
	}
	e.last = at
}

func (e *Encoder) finish(o uimessage.Outcome) finish {
	return finish{
		Type: "finish", FinishReason: e.finishReason(o),
		TotalUsage: totalUsage{InputTokens: e.usage.input, OutputTokens: e.usage.output, TotalTokens: e.usage.input + e.usage.output},
		Metadata:   finishMetadata{Cost: e.usage.costs(), DurationMs: max(0, e.last.Sub(e.first).Milliseconds())},
	}
}

// finishReason returns one of the six finish reasons of a model answer.
func (e *Encoder) finishReason(o uimessage.Outcome) eventlog.FinishReason {
	switch o {
	case uimessage.Failed, uimessage.Aborted:
		return eventlog.FinishError
	case uimessage.Waiting:
		return eventlog.FinishToolCalls
	case uimessage.Completed:
	default:
		return eventlog.FinishOther
	}
	switch e.reason {
	case "", eventlog.FinishStop, eventlog.FinishToolCalls: // the last call may give the output
		return eventlog.FinishStop
	case eventlog.FinishLength, eventlog.FinishContentFilter, eventlog.FinishError:
		return e.reason
	}
	return eventlog.FinishOther
}
