package timetravel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// ForkRequest makes a new session of another one's past.
type ForkRequest struct {
	FromSessionID string
	// At is where; the zero Target is the head.
	At Target
	// MessageIndex, if set, is instead the message after which the fork
	// begins, from 0: right before the next one. What a fork has taken over
	// from another session counts as one.
	MessageIndex *int
	NewSessionID string // empty: a fresh id
	// Tenant is the fork's if the other session has none.
	Tenant string
	// Edit changes what the fork begins with.
	Edit ForkEdit
	// Run has the fork run on at once: its open turn or, if there is none, a new
	// one with Messages, or one that answers what was edited. Messages go with
	// an open turn, too, whose open calls are abandoned then.
	Run      bool
	Messages []agentloop.Input
}

// Forked names a fork.
type Forked struct {
	SessionID     string `json:"sessionId"`
	FromSessionID string `json:"fromSessionId"`
	FromSequence  uint64 `json:"fromSequence"`
	// Edits names what was edited; nil: nothing.
	Edits *fact.ForkEdits `json:"edits,omitempty"`
	// RunID is the run that was asked for.
	RunID string `json:"runId,omitempty"`
}

// Fork makes a session whose first record holds the state of another one at a
// sequence: nothing later needs that one. If a turn was open there, the fork is
// interrupted, and Resume continues with it; calls that have no result are
// executed in both, and remote agents are asked again. A fork that exists with
// the same origin and edits is returned, with its first run; if the other session is gone, which sequence a
// checkpoint or a message was is not asked any more.
//
// Errors: eventlog.ErrSessionNotFound, ErrCheckpointNotFound, ErrSessionExists,
// *eventlog.CursorAheadError, *eventlog.TrimmedError,
// *eventlog.ValidationError; eventlog.ErrTooLarge if the state is more than the
// log takes as one record; a *WorkspaceWiringError if this node has not the
// workspaces' provider, and what that returns: the fork's workspaces begin with
// the files of the last checkpoint before, and a message to its model says what they lack. With Run also ErrUnknownAgent, and ErrNothingToResume
// if there is nothing to run; *quota.Exceeded. Then there is no fork.
func (h *History) Fork(ctx context.Context, req ForkRequest) (Forked, error) {
	if !req.Run && len(req.Messages) > 0 {
		return Forked{}, &eventlog.ValidationError{Field: "message", Reason: "goes with run"}
	}
	if err := cmp.Or(req.Edit.check(), request.CheckInputs(req.Messages)); err != nil {
		return Forked{}, err
	}
	head, err := h.head(ctx, req.FromSessionID)
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return h.orphanedFork(ctx, req)
	}
	if err != nil {
		return Forked{}, err
	}
	seq, err := h.forkSequence(ctx, req, head)
	if err != nil {
		return Forked{}, err
	}
	then, err := h.states.At(ctx, req.FromSessionID, seq)
	if err != nil {
		return Forked{}, err
	}
	if then.SessionID == "" {
		return Forked{}, &eventlog.ValidationError{Field: "sequence", Reason: "is before the session's first record"}
	}
	then, edits, names, err := h.edited(ctx, then, req.Edit)
	if err != nil {
		return Forked{}, err
	}
	edits = append(edits, func(fork *projector.Tree) { fork.Tenant = cmp.Or(fork.Tenant, req.Tenant) })
	id := req.NewSessionID
	if id == "" {
		id = "fork-" + h.clock.NewID()
	}
	forked := Forked{SessionID: id, FromSessionID: req.FromSessionID, FromSequence: then.Head, Edits: names}
	var state json.RawMessage
	propose := func(t *projector.Tree) (facts []record.Draft, run string, err error) {
		if t == nil {
			if state == nil {
				if err := h.mayFork(ctx, then, id, req, edits); err != nil {
					return nil, "", err
				}
				if state, err = h.forkState(ctx, then, id, edits); err != nil {
					return nil, "", err
				}
			}
			facts = h.forkRecords(then, forked, state)
			if !req.Run {
				return facts, "", nil
			}
			if t, err = record.FoldFork(facts); err != nil {
				return nil, "", err
			}
		} else if from := t.ForkedFrom; from == nil || from.SessionID != req.FromSessionID || from.Sequence != then.Head || !req.Edit.same(from.Edits) {
			return nil, "", agentloop.ErrSessionExists
		}
		if !req.Run {
			return nil, "", nil
		}
		if len(t.Runs) > 0 {
			return nil, t.Runs[0].RunID, nil
		}
		more, run, err := h.runFork(ctx, t, req)
		if err != nil {
			return nil, "", err
		}
		return append(facts, more...), run, nil
	}
	if !req.Run {
		_, err = h.requests.Change(ctx, id, func(t *projector.Tree) ([]record.Draft, error) {
			facts, _, err := propose(t)
			return facts, err
		})
	} else if err = h.requests.Hosted(ctx, then.AgentType); err == nil {
		var s request.Started
		s, err = h.requests.Do(ctx, id, then.AgentType, nil, propose)
		forked.RunID = s.RunID
	}
	if err != nil {
		return Forked{}, err
	}
	return forked, nil
}

// mayFork refuses a fork that its tenant's limits do not allow, before workspaces are
// copied for it. It is charged when it is appended.
func (h *History) mayFork(ctx context.Context, then *projector.Tree, id string, req ForkRequest, edits []projector.Edit) error {
	tenant := cmp.Or(then.Tenant, req.Tenant)
	if !h.requests.Quota.Limited(ctx, tenant) {
		return nil
	}
	state, err := projector.ForkState(then, id, edits...)
	if err != nil {
		return err
	}
	held, err := h.requests.Quota.Admit(ctx, tenant, id, quota.Want{Session: true, Run: req.Run, Bytes: int64(len(state))})
	held.Done(nil)
	return err
}

// forkState returns the state with which a fork begins. Snapshots of workspaces
// are copied, to be its own, but for those that are gone: the first use finds
// that out.
func (h *History) forkState(ctx context.Context, then *projector.Tree, id string, edits []projector.Edit) (json.RawMessage, error) {
	for _, s := range then.Sessions() {
		w := s.Workspace
		if w == nil || w.Snapshot == nil {
			continue
		}
		p := h.files.Providers[w.ProviderID]
		if p == nil {
			return nil, &agentloop.WorkspaceWiringError{Agent: s.AgentType, Provider: w.ProviderID, Known: h.files.Providers.Kinds()}
		}
		var snapshot json.RawMessage
		err := h.files.Ask(ctx, p.ID(), files.AskAdopt, func() (err error) {
			snapshot, err = p.Adopt(ctx, workspace.Session{Root: id, ID: projector.ForkID(then, id, s.SessionID)}, w.Snapshot)
			return err
		})
		switch {
		case errors.Is(err, workspace.ErrGone):
		case err != nil:
			return nil, fmt.Errorf("agentloop: fork: workspace of %s: %w", s.SessionID, err)
		default:
			edits = append(edits, projector.EditSnapshot(s.SessionID, snapshot))
		}
	}
	return projector.ForkState(then, id, edits...)
}

// orphanedFork returns the fork that was made of a session before that was
// erased.
func (h *History) orphanedFork(ctx context.Context, req ForkRequest) (Forked, error) {
	if req.NewSessionID == "" {
		return Forked{}, eventlog.ErrSessionNotFound
	}
	t, err := h.states.Head(ctx, req.NewSessionID)
	if err != nil {
		return Forked{}, err
	}
	from := t.ForkedFrom
	if from == nil || from.SessionID != req.FromSessionID || !req.Edit.same(from.Edits) ||
		req.At.Sequence != 0 && req.At.Sequence != from.Sequence && from.Edits == nil { // edits may lead further back
		return Forked{}, eventlog.ErrSessionNotFound
	}
	forked := Forked{SessionID: req.NewSessionID, FromSessionID: from.SessionID, FromSequence: from.Sequence, Edits: from.Edits}
	if req.Run && len(t.Runs) > 0 {
		forked.RunID = t.Runs[0].RunID
	}
	return forked, nil
}

// forkRecords returns the first records of a fork: its state, the resync for clients, and the
// state of its stream.
func (h *History) forkRecords(then *projector.Tree, f Forked, state json.RawMessage) []record.Draft {
	base := h.clock.FactBase(f.SessionID)
	resync := record.Resync(nil, eventlog.ResyncBranch) // checkpoints are the other session's
	resync.Base = h.clock.ChunkBase(&then.Session)
	resync.AgentID = f.SessionID
	facts := []record.Draft{
		{Fact: &fact.SessionForked{FromSessionID: f.FromSessionID, FromSequence: f.FromSequence, State: state, Edits: f.Edits, Base: base}},
		{Chunk: resync},
	}
	switch {
	case then.Turn != nil:
		return append(facts, record.Draft{Fact: &fact.StreamPaused{Reason: "branch", Base: base}})
	case then.Status == projector.SessionCompleted:
		return append(facts, record.Draft{Fact: &fact.StreamEnd{StreamID: f.SessionID, Timestamp: base.Timestamp, FinalOutput: then.Output}})
	case then.Status == projector.SessionFailed && then.Error != nil:
		return append(facts, record.Draft{Fact: &fact.StreamFailed{Error: then.Error.Message, Base: base}})
	}
	return facts
}

// forkSequence returns where to fork.
func (h *History) forkSequence(ctx context.Context, req ForkRequest, t *projector.Tree) (uint64, error) {
	switch {
	case req.MessageIndex != nil && req.At != (Target{}):
		return 0, &eventlog.ValidationError{Field: "messageIndex", Reason: "excludes a checkpoint and a sequence"}
	case req.MessageIndex != nil && (*req.MessageIndex < 0 || *req.MessageIndex >= len(t.Messages)):
		return 0, &eventlog.ValidationError{Field: "messageIndex", Reason: "is no message of the session"}
	case req.MessageIndex != nil:
		return h.behindMessage(ctx, t, t.Messages, *req.MessageIndex)
	case req.At == (Target{}):
		return t.Head, nil
	}
	return req.At.sequence(t)
}

// behindMessage returns the sequence before the next message's of a session of
// the tree, or before what was appended together with that: a fork must not have
// the half of it.
func (h *History) behindMessage(ctx context.Context, t *projector.Tree, messages []projector.Message, i int) (uint64, error) {
	at, next := messages[i].Sequence, t.Head+1
	for _, m := range messages[i+1:] {
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
	for r, err := range h.requests.Log.Read(ctx, t.SessionID, at, next-1) {
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
// with a message after it: a call's patches, and that calls are abandoned.
func precedesMessage(r eventlog.Record) bool {
	if r.Kind == eventlog.KindChunk {
		return r.Type == (*eventlog.StatePatch)(nil).Type() && r.Call != ""
	}
	f, err := r.Fact()
	submitted, ok := f.(*fact.ResultSubmitted)
	return err == nil && ok && submitted.Kind == fact.SubmitAbandoned
}
