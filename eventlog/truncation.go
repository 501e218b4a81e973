package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/helixd/helixd/eventlog/fact"
)

// Truncated is the marker that hides records from the effective stream. It deletes
// nothing. Ranges says which records. AtSequence is the head when the marker was
// written: a reader that had not yet passed it is notified. The other fields repeat
// the request: TruncatedAtStep and MinSequence of a clean-up by step,
// AfterSequence and Restore of a rollback.
type Truncated struct {
	Reason     ResyncReason `json:"reason"`
	Ranges     []Range      `json:"ranges"`
	AtSequence uint64       `json:"atSequence"`
	// TruncatedAtStep is the last step that a clean-up keeps.
	TruncatedAtStep *int `json:"truncatedAtStep,omitempty" helix:"count"`
	// MinSequence is the floor of a clean-up; what is at or before it
	// stays.
	MinSequence uint64 `json:"minSequence,omitempty"`
	// AfterSequence is the record that a rollback goes back to. Only
	// rollbacks have it.
	AfterSequence uint64 `json:"afterSequence,omitempty"`
	// Restore is an object that package projector writes and reads: what the fold
	// needs to go back and can't compute from the records.
	Restore json.RawMessage `json:"restore,omitempty" helix:"object"`
	fact.Base
}

// Type returns "truncated".
func (*Truncated) Type() string { return "truncated" }

// Range is a part of the log that a [Truncated] fact hides: records of one
// agent with From <= sequence <= To, as far as Scope reaches. They are those of
// one tool call or, if CallID is empty, of no call; with ScopeAll and ScopeStream, of any.
type Range struct {
	AgentID string `json:"agentId"`
	CallID  string `json:"callId,omitempty"`
	From    uint64 `json:"from"`
	To      uint64 `json:"to"`
	Scope   Scope  `json:"scope,omitempty"`
}

// Scope says which records a [Range] can truncate; see [Scope.Truncates].
type Scope string

// The scopes.
const (
	ScopeRun     Scope = ""        // content that a model or a tool produced in a run
	ScopeContent Scope = "content" // content, also of outside producers
	ScopeChunks  Scope = "chunks"  // all chunks, lifecycle chunks included
	ScopeStream  Scope = "stream"  // the stream: chunks, pauses and ends
	ScopeAll     Scope = "all"     // everything that a rollback can hide
)

// Truncations is the set of truncated records. The log keeps them; the effective stream leaves
// them out.
type Truncations []Range

// Add adds the ranges of a marker record; other records add nothing. A
// marker truncates only what precedes it. A marker that can't be understood is an
// error, since reading on without it would show truncated records.
func (d *Truncations) Add(r Record) error {
	m, err := markerOf(r)
	if m == nil || err != nil {
		return err
	}
	for _, g := range m.Ranges {
		switch g.Scope {
		case ScopeRun, ScopeContent, ScopeChunks, ScopeStream, ScopeAll:
		default:
			return fmt.Errorf("eventlog: marker %d has the unknown scope %q", r.Sequence, g.Scope)
		}
	}
	for _, g := range m.Ranges {
		if g.To = min(g.To, r.Sequence-1); g.From <= g.To {
			*d = append(*d, g)
		}
	}
	return nil
}

// markerOf returns the marker that r is, or nil.
func markerOf(r Record) (*Truncated, error) {
	if r.Kind != KindFact || r.Type != (*Truncated)(nil).Type() {
		return nil, nil
	}
	f, err := r.Fact()
	if err != nil {
		return nil, err
	}
	return f.(*Truncated), nil
}

// Covers reports whether r is truncated.
func (d Truncations) Covers(r Record) bool {
	for _, rg := range d {
		if rg.Covers(r) {
			return true
		}
	}
	return false
}

// Covers reports whether the range truncates r.
func (g Range) Covers(r Record) bool {
	return g.From <= r.Sequence && r.Sequence <= g.To && g.AgentID == r.Agent &&
		(g.Scope.AnyCall() || g.CallID == r.Call) && g.Scope.Truncates(r.Envelope)
}

// AnyCall reports whether a range of this scope reaches the records of all
// calls.
func (s Scope) AnyCall() bool { return s == ScopeAll || s == ScopeStream }

// Truncates reports whether a range of this scope truncates such a record.
//
// ScopeRun is the content that a model or a tool produced in a run. Facts and lifecycle
// chunks stay; so does the content of outside producers, which nobody would write again.
// ScopeContent is content of any writer. ScopeChunks is every chunk. ScopeStream is every chunk and the facts
// by which the stream pauses, continues and ends.
//
// ScopeAll is for a rollback: every chunk, and the facts that say what
// happened in the conversation and to the stream: messages, model turns, tool
// results, the beginning, the stop and the end of runs, suspensions and
// submissions, pauses and ends. Facts that are true in any case stay: the creation of the
// session, claims, usage, earlier markers. A fact of an unknown type stays too, since it
// may be of that sort.
func (s Scope) Truncates(e Envelope) bool {
	switch s {
	case ScopeRun:
		return isContent(e) && e.Run != ""
	case ScopeContent:
		return isContent(e)
	case ScopeChunks:
		return e.Kind == KindChunk
	case ScopeStream:
		return e.Kind == KindChunk || e.Kind == KindFact && e.Type != (*fact.RunRequested)(nil).Type() && changesStream(e.Type)
	case ScopeAll:
		return e.Kind == KindChunk || e.Kind == KindFact && mortalFact(e.Type)
	}
	return false
}

// isContent distinguishes content of a model, a tool or a producer from lifecycle chunks.
func isContent(e Envelope) bool {
	if e.Kind != KindChunk {
		return false
	}
	switch e.Type {
	case (*RunInterrupted)(nil).Type(), (*RunResumed)(nil).Type(), (*RunPaused)(nil).Type(),
		(*ExecutorSuperseded)(nil).Type(), (*CheckpointCreated)(nil).Type(), (*StepCommitted)(nil).Type(),
		(*StepDiscarded)(nil).Type(), (*StreamResync)(nil).Type(), (*SuspensionMarker)(nil).Type(),
		(*Error)(nil).Type():
		return false
	}
	return true
}

func mortalFact(typ string) bool {
	switch typ {
	case (*fact.UserMessage)(nil).Type(), (*fact.RunRequested)(nil).Type(), (*fact.ModelTurn)(nil).Type(), (*fact.ModelFailed)(nil).Type(),
		(*fact.ToolResult)(nil).Type(), (*fact.RunEnded)(nil).Type(), (*fact.StreamPaused)(nil).Type(), (*fact.StreamResumed)(nil).Type(),
		(*fact.StreamEnd)(nil).Type(), (*fact.StreamFailed)(nil).Type(), (*fact.CallSuspended)(nil).Type(),
		(*fact.ResultSubmitted)(nil).Type(), (*fact.InterruptRequested)(nil).Type(), (*fact.RemoteProgress)(nil).Type(),
		(*fact.MemoryRecalled)(nil).Type(), (*fact.WorkspaceSaved)(nil).Type(), (*fact.WorkspaceRestored)(nil).Type(),
		(*fact.MessageAdded)(nil).Type():
		return true
	}
	return false
}

// Effective yields what is left of the records with from < sequence <= to
// when the markers among them are applied (to 0: up to the head). It reads
// twice: markers follow what they truncate.
func Effective(ctx context.Context, log Log, session string, from, to uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if to == 0 {
			head, err := log.Head(ctx, session)
			if err != nil {
				yield(Record{}, err)
				return
			}
			to = head // of both reads
		}
		var dead Truncations
		for r, err := range log.Read(ctx, session, from, to) {
			if err == nil {
				err = dead.Add(r)
			}
			if err != nil {
				yield(Record{}, err)
				return
			}
		}
		for r, err := range log.Read(ctx, session, from, to) {
			if err == nil && dead.Covers(r) {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
