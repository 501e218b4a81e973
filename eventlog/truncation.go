package eventlog

import (
	"context"
	"iter"
)

// Dead is the set of records that truncation markers have struck. The log
// itself keeps them; the effective stream leaves them out.
type Dead []Range

// Mark adds the ranges of a marker record; other records add nothing.
func (d *Dead) Mark(r Record) error {
	if r.Kind != KindFact || r.Type != (*Truncated)(nil).Type() {
		return nil
	}
	f, err := r.Fact()
	if err != nil {
		return err
	}
	*d = append(*d, f.(*Truncated).Ranges...)
	return nil
}

// Covers reports whether r is struck.
func (d Dead) Covers(r Record) bool {
	for _, rg := range d {
		if rg.Covers(r) {
			return true
		}
	}
	return false
}

// Covers reports whether the range strikes r.
func (g Range) Covers(r Record) bool {
	return g.From <= r.Sequence && r.Sequence <= g.To &&
		g.AgentID == r.Agent && g.CallID == r.Call && Strikable(r.Envelope)
}

// Strikable reports whether a marker's range can strike such a record: the
// content that a model or a tool produced in a run. Facts, and the chunks that
// tell a run's life, stay; so does what outside producers wrote, which nobody
// would write again.
func Strikable(e Envelope) bool {
	if e.Kind != KindChunk || e.Run == "" {
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

// Effective yields what is left of the records with from < sequence <= to
// when the markers among them are applied (to 0: up to the head). It reads
// twice: markers follow what they strike.
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
		var dead Dead
		for r, err := range log.Read(ctx, session, from, to) {
			if err == nil {
				err = dead.Mark(r)
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
