package eventlog

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"

	"github.com/helixd/helixd/eventlog/fact"
)

// RollbackOptions say what a rollback carries.
type RollbackOptions struct {
	// Restore is what the fold needs to go back, from projector.RestoreAt of
	// the state at the sequence that is gone back to. It is required.
	Restore json.RawMessage
	// Reason; empty: rollback.
	Reason ResyncReason
	// Then, if set, returns entries that are appended right after the marker, all
	// or none with it: a stream_resync for attached clients, or a request for a
	// new run. head is the record before which nothing can come any more; Then is
	// called again if another writer was first.
	Then func(head uint64) ([]Entry, error)
}

// Rollback takes the session's tree back to its record with sequence after:
// one marker truncates all later records that can be truncated ([ScopeAll]), with a range for
// each agent, and the fold restores the state at that record. Nothing is deleted;
// raw reads and states of earlier sequences still show everything, and sequences keep
// rising. It returns the marker, or nil if no later record can be truncated;
// then it appends nothing, neither the marker nor what Then returns.
//
// A run that is under way must not write after the marker: a claim that
// precedes it, in the same append, supersedes every writer of the tree.
//
// Records that were appended together belong together. A rollback to one in their midst
// gives a state that no run has seen; a checkpoint's sequence and the end of a turn are
// good places.
//
// Errors: ErrSessionNotFound; *CursorAheadError if after is beyond the head;
// *ValidationError if it is not the sequence of one of the session's records,
// or of one that an earlier rollback has truncated, since the state there can't be
// restored; ErrTooLarge if the log takes no record as large as Restore;
// ErrOutcomeUnknown if ctx ended too early.
func Rollback(ctx context.Context, log Log, session string, after uint64, o RollbackOptions) (*Truncated, error) {
	if o.Restore == nil {
		return nil, &ValidationError{Field: "restore", Reason: "is required"}
	}
	if err := checkRecord(ctx, log, session, after); err != nil {
		return nil, err
	}
	o.Reason = cmp.Or(o.Reason, ResyncRollback)
	plan := truncation{scope: ScopeAll}
	see := func(r Record) error {
		m, err := markerOf(r)
		if err != nil {
			return err
		}
		if m != nil && 0 < m.AfterSequence && m.AfterSequence < after {
			return &ValidationError{Field: "after", Reason: "is in a part that an earlier rollback has truncated"}
		}
		return plan.see(r)
	}
	return mark(ctx, log, session, UpdateOptions{
		Writer: randomID("rollback:"), CatchUp: reading(log, session, after, true, see),
	}, func(head uint64) *Truncated {
		return &Truncated{
			Reason: o.Reason, Ranges: plan.ranges(Range{From: after + 1, To: head, Scope: ScopeAll}),
			AfterSequence: after, Restore: o.Restore, Base: fact.Base{By: fact.ActorOf(ctx)},
		}
	}, func(m *Truncated) ([]Entry, error) {
		fence := &fact.RunClaimed{RunID: "rollback-" + rand.Text(), Node: "rollback", Attempt: 1, Base: m.Base}
		entries, err := entriesOf(session, fence, m)
		if err != nil || o.Then == nil {
			return entries, err
		}
		then, err := o.Then(m.AtSequence)
		return append(entries, then...), err
	})
}

// checkRecord refuses a sequence that is none of the session's.
func checkRecord(ctx context.Context, log Log, session string, seq uint64) error {
	problem := &ValidationError{Field: "after", Reason: "must be the sequence of a record of the session"}
	if seq == 0 {
		return problem
	}
	for _, err := range log.Read(ctx, session, seq-1, seq) {
		return err
	}
	return problem
}
