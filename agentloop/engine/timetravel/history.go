// Package timetravel rolls sessions back, and forks new sessions from any point of their history.
package timetravel

import (
	"context"
	"slices"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/admission"
	"github.com/helixd/helixd/agentloop/engine/internal/files"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// History has the past of sessions: see [New].
type History struct {
	requests *request.Core
	states   *snapshot.Store
	clock    record.Clock
	files    *files.Files
}

// New returns what a loop has as its field TimeTravel.
func New(requests *request.Core, f *files.Files) *History {
	return &History{requests: requests, states: requests.States, clock: requests.Clock, files: f}
}

// head returns the state of a session that the request may use.
func (h *History) head(ctx context.Context, session string) (*projector.Tree, error) {
	t, err := h.states.Head(ctx, session)
	if err == nil {
		err = request.MayUse(ctx, t)
	}
	return t, err
}

// Checkpoints returns the checkpoints of a session, oldest first, and how many
// there are.
func (h *History) Checkpoints(ctx context.Context, session string, limit, offset int) ([]projector.Checkpoint, int, error) {
	t, err := h.states.Head(ctx, session)
	if err != nil {
		return nil, 0, err
	}
	page := t.Checkpoints[min(max(offset, 0), len(t.Checkpoints)):]
	return slices.Clone(page[:min(max(limit, 0), len(page))]), len(t.Checkpoints), nil
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
// on with it. So are the turns of sub-agents, which continue with their parent. It returns
// the marker, nil if there was nothing to take back.
//
// Errors: eventlog.ErrSessionNotFound, ErrCheckpointNotFound, *quota.Exceeded, and
// those of eventlog.Rollback.
func (h *History) Rollback(ctx context.Context, session string, at Target) (*eventlog.Truncated, error) {
	t, err := h.head(ctx, session)
	if err != nil {
		return nil, err
	}
	seq, err := at.sequence(t)
	if err != nil {
		return nil, err
	}
	return h.goBack(ctx, session, seq, eventlog.ResyncRollback, func(*projector.Tree) error { return nil }, h.interrupted)
}

// interrupted returns the records that stop the runs which continue in a state. Those of
// sub-agents continue with their parent's next run, as in a fork.
func (h *History) interrupted(then *projector.Tree) (facts []record.Draft) {
	for _, s := range then.Sessions() {
		if !s.Running() {
			continue
		}
		run, base := s.Turn.RunID, h.clock.FactBase(s.SessionID)
		ended := record.Draft{Run: run, Fact: &fact.RunEnded{RunID: run, Status: fact.RunStopped, Base: base}}
		if s == &then.Session {
			facts = append(facts, ended, record.Draft{Run: run, Fact: &fact.StreamPaused{Reason: "rollback", Base: base}})
			continue
		}
		stop := record.Draft{Run: run, Fact: &fact.InterruptRequested{RunID: run, Kind: fact.StopInterrupt, ByParent: true, Base: base}}
		facts = append(facts, record.About(s.SessionID, []record.Draft{stop, ended})...)
	}
	return facts
}

// goBack rolls a session back to a record and appends, with the marker, which
// steps that ends, a stream_resync and what next makes of the state there, unless may refuses
// to leave the state that the session has now. The
// marker holds the whole state, so its bytes are charged.
func (h *History) goBack(
	ctx context.Context, session string, seq uint64, reason eventlog.ResyncReason,
	may func(now *projector.Tree) error, next func(then *projector.Tree) []record.Draft,
) (*eventlog.Truncated, error) {
	then, err := h.states.At(ctx, session, seq)
	if err != nil {
		return nil, err
	}
	restore, err := projector.RestoreAt(then)
	if err != nil {
		return nil, err
	}
	resync := record.Resync(then.LatestCheckpoint(), reason)
	resync.Base = h.clock.ChunkBase(&then.Session)
	more := append([]record.Draft{{Chunk: resync}}, next(then)...)
	record.SetActor(ctx, more)
	charged := admission.Admission{Quota: h.requests.Quota}
	defer func() { charged.Done(nil) }()
	marker, err := eventlog.Rollback(ctx, h.requests.Log, session, seq, eventlog.RollbackOptions{
		Restore: restore, Reason: reason, Then: func(head uint64) ([]eventlog.Entry, error) {
			if err := charged.AdmitBytes(ctx, session, then.Tenant, len(restore)); err != nil {
				return nil, err
			}
			now, err := h.states.At(ctx, session, head)
			if err == nil {
				err = request.MayUse(ctx, now)
			}
			if err == nil {
				err = may(now)
			}
			if err != nil {
				return nil, err
			}
			return record.Entries(session, append(h.clock.TakenBack(now, then), more...))
		},
	})
	if marker == nil {
		return nil, err
	}
	if after, err := h.states.Head(ctx, session); err == nil { // otherwise it counts once the read models see it
		charged.Done(after)
	}
	return marker, nil
}
