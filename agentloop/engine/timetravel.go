package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/admission"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Checkpoints returns the checkpoints of a session, oldest first, and how many
// there are.
func (l *Loop) Checkpoints(ctx context.Context, session string, limit, offset int) ([]projector.Checkpoint, int, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return nil, 0, err
	}
	all := t.Checkpoints
	from := min(max(offset, 0), len(all))
	return slices.Clone(all[from:min(from+max(limit, 0), len(all))]), len(all), nil
}

// Target is a place in a session's history: one of the fields is set.
type Target struct {
	CheckpointID string
	Sequence     uint64
}

// sequence returns the record that a target names.
func (at Target) sequence(t *projector.Tree) (uint64, error) {
	switch {
	case at.CheckpointID != "" && at.Sequence != 0:
		return 0, &eventlog.ValidationError{Field: "sequence", Reason: "excludes checkpointId"}
	case at.Sequence != 0:
		return at.Sequence, nil
	case at.CheckpointID == "":
		return 0, &eventlog.ValidationError{Field: "checkpointId", Reason: "is required, or sequence"}
	}
	for _, cp := range t.Checkpoints {
		if cp.ID == at.CheckpointID {
			return cp.StreamSequence, nil
		}
	}
	return 0, agentloop.ErrCheckpointNotFound
}

// Rollback takes a session back. Nothing is deleted, and a run that is under
// way is superseded. If a turn was open there, it is interrupted: Resume goes
// on with it. It returns the marker, nil if there was nothing to take back.
//
// Errors: eventlog.ErrSessionNotFound, ErrCheckpointNotFound, *quota.Exceeded, and
// those of eventlog.Rollback.
func (l *Loop) Rollback(ctx context.Context, session string, at Target) (*eventlog.Truncated, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	seq, err := at.sequence(t)
	if err != nil {
		return nil, err
	}
	return l.goBack(ctx, session, seq, eventlog.ResyncRollback, func(then *projector.Tree) []record.Draft {
		if !then.Running() {
			return nil
		}
		run := then.Turn.RunID
		return []record.Draft{
			{Run: run, Fact: &eventlog.RunEnded{RunID: run, Status: eventlog.RunStopped, FactBase: l.clock.FactBase(session)}},
			{Run: run, Fact: &eventlog.StreamPaused{Reason: "rollback", FactBase: l.clock.FactBase(session)}},
		}
	})
}

// goBack rolls a session back to a record and appends, with the marker, which
// steps that ends, a stream_resync and what next makes of the state there. The
// marker holds the whole state, so its bytes are charged.
func (l *Loop) goBack(
	ctx context.Context, session string, seq uint64, reason eventlog.ResyncReason, next func(*projector.Tree) []record.Draft,
) (*eventlog.Truncated, error) {
	then, err := l.states.At(ctx, session, seq)
	if err != nil {
		return nil, err
	}
	restore, err := projector.RestoreAt(then)
	if err != nil {
		return nil, err
	}
	resync := record.Resync(then.LatestCheckpoint(), reason)
	resync.Base = l.clock.ChunkBase(&then.Session)
	more := append([]record.Draft{{Chunk: resync}}, next(then)...)
	record.SetActor(ctx, more)
	charged := admission.Admission{Quota: l.opts.Quota}
	defer func() { charged.Done(nil) }()
	marker, err := eventlog.Rollback(ctx, l.log, session, seq, eventlog.RollbackOptions{
		Restore: restore, Reason: reason, Then: func(head uint64) ([]eventlog.Entry, error) {
			if err := charged.AdmitBytes(ctx, session, then.Tenant, len(restore)); err != nil {
				return nil, err
			}
			now, err := l.states.At(ctx, session, head)
			if err != nil {
				return nil, err
			}
			return record.Entries(session, append(l.clock.TakenBack(now, then), more...))
		},
	})
	if marker == nil {
		return nil, err
	}
	if after, err := l.states.Head(ctx, session); err == nil { // otherwise it counts once the read models see it
		charged.Done(after)
	}
	return marker, nil
}

// rewind resumes from a checkpoint or a turn's beginning.
func (l *Loop) rewind(ctx context.Context, req ResumeRequest) (Started, error) {
	t, err := l.states.Head(ctx, req.SessionID)
	if err != nil {
		return Started{}, err
	}
	switch hosted := l.requests.Hosted(ctx, t.AgentType); {
	case hosted != nil:
		return Started{}, hosted
	case l.Executing(ctx, t):
		return Started{}, agentloop.ErrAlreadyRunning
	}
	seq, reason := uint64(0), eventlog.ResyncRollback
	if req.Mode == eventlog.ModeRetry {
		reason = eventlog.ResyncRetry
		seq, err = turnStart(t, req.Turn)
	} else {
		seq, err = Target{CheckpointID: req.CheckpointID}.sequence(t)
	}
	if err != nil {
		return Started{}, err
	}
	charged := admission.Admission{Quota: l.opts.Quota}
	if err := charged.Admit(ctx, req.SessionID, t, l.requests.NewRun(ctx, req.SessionID, req.Mode, req.Messages)); err != nil {
		return Started{}, err
	}
	defer charged.Done(nil)
	ticket, done, err := l.node.Announce(ctx, t.AgentType, req.SessionID)
	if err != nil {
		return Started{}, err
	}
	defer done()
	var run string
	marker, err := l.goBack(ctx, req.SessionID, seq, reason, func(then *projector.Tree) []record.Draft {
		facts := l.requests.NewRun(ctx, req.SessionID, req.Mode, req.Messages)
		run = facts[0].Run
		l.node.Attach(req.SessionID, run, req.Hooks)
		return append(facts, l.clock.Resumed(&then.Session, run, req.Mode))
	})
	switch {
	case err != nil:
		l.node.Detach(req.SessionID, run)
		return Started{}, err
	case marker == nil: // nothing has happened since
		charged.Done(nil) // request does it
		return l.requests.Do(ctx, req.SessionID, "", func(t *projector.Tree) ([]record.Draft, string, error) {
			facts := l.requests.NewRun(ctx, req.SessionID, req.Mode, req.Messages)
			l.node.Attach(req.SessionID, facts[0].Run, req.Hooks)
			return append(facts, l.clock.Resumed(&t.Session, facts[0].Run, req.Mode)), facts[0].Run, nil
		})
	}
	if after, err := l.states.Head(ctx, req.SessionID); err == nil { // otherwise it counts once the read models see it
		charged.Done(after)
	}
	l.requests.Dispatch(t, ticket)
	return started(req.SessionID, run), nil
}

// turnStart returns the record after which a turn's first run was requested:
// the turn's messages are there, and nothing else of it.
func turnStart(t *projector.Tree, turn int) (uint64, error) {
	if turn == 0 {
		turn = t.TurnCount
	}
	for _, run := range t.Runs {
		if run.Turn == turn && run.StartSequence > 0 && !run.Struck {
			return run.StartSequence, nil
		}
	}
	return 0, agentloop.ErrNothingToResume
}

func ignoreNotFound(err error) error {
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return nil
	}
	return err
}
