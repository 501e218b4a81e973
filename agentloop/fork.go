package agentloop

import (
	"context"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// ForkRequest makes a new session of another one's past.
type ForkRequest struct {
	FromSessionID string
	// At is where; the zero Target is the head.
	At Target
	// MessageIndex, if set, is instead the message behind which the fork
	// begins, from 0: right before the next one. What a fork has taken over
	// from another session counts as one.
	MessageIndex *int
	NewSessionID string // empty: a fresh id
}

// Forked names a fork.
type Forked struct {
	SessionID     string `json:"sessionId"`
	FromSessionID string `json:"fromSessionId"`
	FromSequence  uint64 `json:"fromSequence"`
}

// Fork makes a session whose first record holds the state of another one at a
// sequence: nothing later needs that one. If a turn was open there, the fork is
// interrupted, and Resume goes on with it; calls that have no result are
// executed in both, and remote agents are asked anew. A fork that exists with
// the same origin is returned; if the other session is gone, which sequence a
// checkpoint or a message was is not asked any more.
//
// Errors: eventlog.ErrSessionNotFound, ErrCheckpointNotFound, ErrSessionExists,
// *eventlog.CursorAheadError, *eventlog.TrimmedError,
// *eventlog.ValidationError; eventlog.ErrTooLarge if the state is more than the
// log takes as one record.
func (l *Loop) Fork(ctx context.Context, req ForkRequest) (Forked, error) {
	head, err := l.states.Head(ctx, req.FromSessionID)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return l.orphanedFork(ctx, req)
	}
	if err != nil {
		return Forked{}, err
	}
	seq, err := l.forkSequence(ctx, req, head)
	if err != nil {
		return Forked{}, err
	}
	then, err := l.states.At(ctx, req.FromSessionID, seq)
	if err != nil {
		return Forked{}, err
	}
	if then.SessionID == "" {
		return Forked{}, &eventlog.ValidationError{Field: "sequence", Reason: "is before the session's first record"}
	}
	seq = then.Head
	id := req.NewSessionID
	if id == "" {
		id = "fork-" + l.opts.NewID()
	}
	state, err := projector.ForkState(then, id)
	if err != nil {
		return Forked{}, err
	}
	forked := Forked{SessionID: id, FromSessionID: req.FromSessionID, FromSequence: seq}
	_, err = l.appendPlan(ctx, id, func(t *projector.Tree) ([]fact, error) {
		if t == nil {
			return l.forkRecords(then, forked, state), nil
		}
		if from := t.ForkedFrom; from == nil || from.SessionID != req.FromSessionID || from.Sequence != seq {
			return nil, ErrSessionExists
		}
		return nil, nil
	})
	if err != nil {
		return Forked{}, err
	}
	return forked, nil
}

// orphanedFork returns the fork that was made of a session before that was
// erased.
func (l *Loop) orphanedFork(ctx context.Context, req ForkRequest) (Forked, error) {
	if req.NewSessionID == "" {
		return Forked{}, eventlog.ErrSessionNotFound
	}
	t, err := l.states.Head(ctx, req.NewSessionID)
	if err != nil {
		return Forked{}, err
	}
	from := t.ForkedFrom
	if from == nil || from.SessionID != req.FromSessionID || req.At.Sequence != 0 && req.At.Sequence != from.Sequence {
		return Forked{}, eventlog.ErrSessionNotFound
	}
	return Forked{SessionID: req.NewSessionID, FromSessionID: from.SessionID, FromSequence: from.Sequence}, nil
}

// forkRecords begins a fork: its state, what clients have to know, and how its
// stream stands.
func (l *Loop) forkRecords(then *projector.Tree, f Forked, state []byte) []fact {
	base := l.factBase(f.SessionID)
	resync := resyncOf(&then.Session, eventlog.ResyncBranch)
	resync.FromSequence = 0
	resync.Base = l.chunkBase(&then.Session)
	resync.AgentID = f.SessionID
	facts := []fact{
		{f: &eventlog.SessionForked{FromSessionID: f.FromSessionID, FromSequence: f.FromSequence, State: state, FactBase: base}},
		{c: resync},
	}
	switch {
	case then.Turn != nil:
		return append(facts, fact{f: &eventlog.StreamPaused{Reason: "branch", FactBase: base}})
	case then.Status == projector.SessionCompleted:
		return append(facts, fact{f: &eventlog.StreamEnd{StreamID: f.SessionID, Timestamp: base.Timestamp, FinalOutput: then.Output}})
	case then.Status == projector.SessionFailed && then.Error != nil:
		return append(facts, fact{f: &eventlog.StreamFailed{Error: then.Error.Message, FactBase: base}})
	}
	return facts
}

// forkSequence returns where to fork.
func (l *Loop) forkSequence(ctx context.Context, req ForkRequest, t *projector.Tree) (uint64, error) {
	switch {
	case req.MessageIndex != nil && req.At != (Target{}):
		return 0, &eventlog.ValidationError{Field: "messageIndex", Reason: "excludes a checkpoint and a sequence"}
	case req.MessageIndex != nil && (*req.MessageIndex < 0 || *req.MessageIndex >= len(t.Messages)):
		return 0, &eventlog.ValidationError{Field: "messageIndex", Reason: "is no message of the session"}
	case req.MessageIndex != nil:
		return l.behindMessage(ctx, t, *req.MessageIndex)
	case req.At == (Target{}):
		return t.Head, nil
	}
	return req.At.sequence(t)
}

// behindMessage returns the sequence before the next message's, or before what
// was appended together with that: a fork must not have the half of it.
func (l *Loop) behindMessage(ctx context.Context, t *projector.Tree, i int) (uint64, error) {
	at, next := t.Messages[i].Sequence, t.Head+1
	for _, m := range t.Messages[i+1:] {
		if m.Sequence == at {
			return 0, &eventlog.ValidationError{Field: "messageIndex", Reason: "is among what the session has taken over as a fork"}
		}
		if m.Sequence > at { // calls of a step may have ended in another order
			next = min(next, m.Sequence)
		}
	}
	if next > t.Head {
		return t.Head, nil
	}
	for r, err := range l.log.Read(ctx, t.SessionID, at, next-1) {
		if err != nil {
			return 0, err
		}
		if !precedesMessage(r) {
			at = r.Sequence
		}
	}
	return at, nil
}

// precedesMessage reports whether a record is one that is appended together
// with a message behind it: a call's patches, and that calls are abandoned.
func precedesMessage(r eventlog.Record) bool {
	if r.Kind == eventlog.KindChunk {
		return r.Type == (*eventlog.StatePatch)(nil).Type() && r.Call != ""
	}
	f, err := r.Fact()
	submitted, ok := f.(*eventlog.ResultSubmitted)
	return err == nil && ok && submitted.Kind == eventlog.SubmitAbandoned
}
