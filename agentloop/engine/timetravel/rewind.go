package timetravel

import (
	"context"
	"errors"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/admission"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/engine/internal/request"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// RewindRequest begins a run in a session's past.
type RewindRequest struct {
	SessionID    string
	Mode         fact.RunMode // from_checkpoint or retry
	CheckpointID string       // from_checkpoint
	Turn         int          // retry: the turn, from 1; 0: the last one
	Run          string       // retry: a run, whose beginning to go back to; empty: the first of Turn
	Messages     []agentloop.Input
	// Name is the run's, see fact.RunOptions; empty: it has none. If a run has the name
	// already, that run is the answer, or ErrAlreadyRunning if it has begun meanwhile.
	Name  string
	Hooks *agentloop.Hooks
}

// Rewind resumes a session from a checkpoint or the beginning of a turn or run. The engine's Resume
// calls it for the modes from_checkpoint and retry, and names the errors.
func (h *History) Rewind(ctx context.Context, req RewindRequest) (request.Started, error) {
	for {
		s, err := h.rewind(ctx, req)
		if !errors.Is(err, errMoved) {
			return s, err
		}
	}
}

// errMoved: the session is not any more as it was looked at.
var errMoved = errors.New("agentloop: the session has moved")

func (h *History) rewind(ctx context.Context, req RewindRequest) (request.Started, error) {
	t, err := h.head(ctx, req.SessionID)
	if err != nil {
		return request.Started{}, err
	}
	if run := t.RunNamed(req.Name); run != nil {
		return h.begun(ctx, t, run)
	}
	switch hosted := h.requests.Hosted(ctx, t.AgentType); {
	case hosted != nil:
		return request.Started{}, hosted
	case h.requests.Node.Executing(ctx, t):
		return request.Started{}, agentloop.ErrAlreadyRunning
	}
	seq, reason := uint64(0), eventlog.ResyncRollback
	if req.Mode == fact.ModeRetry {
		reason = eventlog.ResyncRetry
		seq, err = runStart(t, req.Turn, req.Run)
	} else {
		seq, err = Target{CheckpointID: req.CheckpointID}.sequence(t)
	}
	if err != nil {
		return request.Started{}, err
	}
	options := fact.RunOptions{Name: req.Name}
	charged := admission.Admission{Quota: h.requests.Quota}
	if err := charged.Admit(ctx, req.SessionID, t, h.requests.NewRun(ctx, req.SessionID, req.Mode, req.Messages, options)); err != nil {
		return request.Started{}, err
	}
	defer charged.Done(nil)
	ticket, done, err := h.requests.Node.Announce(ctx, t.AgentType, req.SessionID)
	if err != nil {
		return request.Started{}, err
	}
	defer done()
	// Another request may begin a run meanwhile, or this one, if it is repeated: it is not
	// superseded.
	current := t.CurrentRun()
	free := func(now *projector.Tree) error {
		another := now.Running() && (current == nil || now.CurrentRun().RunID != current.RunID)
		if another || now.RunNamed(req.Name) != nil {
			return agentloop.ErrAlreadyRunning
		}
		return nil
	}
	var run string
	begin := func(then *projector.Tree) []record.Draft {
		facts := h.requests.NewRun(ctx, req.SessionID, req.Mode, req.Messages, options)
		run = facts[0].Run
		return append(facts, h.clock.Resumed(&then.Session, run, req.Mode))
	}
	marker, err := h.goBack(ctx, req.SessionID, seq, reason, free, func(then *projector.Tree) []record.Draft {
		facts := begin(then)
		h.requests.Node.Attach(req.SessionID, run, req.Hooks)
		return facts
	})
	if marker == nil {
		h.requests.Node.Detach(req.SessionID, run)
	}
	switch {
	case err != nil:
		return request.Started{}, err
	case marker == nil: // nothing has happened since
		charged.Done(nil) // the request charges
		return h.requests.Do(ctx, req.SessionID, "", req.Hooks, func(now *projector.Tree) ([]record.Draft, string, error) {
			if now == nil {
				return nil, "", eventlog.ErrSessionNotFound
			}
			if err := free(now); err != nil {
				return nil, "", err
			}
			if now.Head != t.Head {
				return nil, "", errMoved
			}
			facts := begin(now)
			return facts, run, nil
		})
	}
	if after, err := h.states.Head(ctx, req.SessionID); err == nil { // otherwise it counts once the read models see it
		charged.Done(after)
		after.Claim = t.Claim // not the rollback's: the node that had the tree may look at the log again
		t = after
	}
	h.requests.Dispatch(t, ticket)
	return request.Begun(req.SessionID, run), nil
}

// begun answers a request whose run there is. If the run's process has died, the run is driven.
func (h *History) begun(ctx context.Context, t *projector.Tree, run *projector.Run) (request.Started, error) {
	if !t.Running() {
		return request.Begun(t.SessionID, run.RunID), nil
	}
	return h.requests.Do(ctx, t.SessionID, "", nil, func(*projector.Tree) ([]record.Draft, string, error) {
		return nil, run.RunID, nil
	})
}

// runStart returns the record after which a run was requested, or a turn's first
// run if none is named: the messages before it are there, and nothing of the run.
func runStart(t *projector.Tree, turn int, named string) (uint64, error) {
	if turn == 0 {
		turn = t.TurnCount
	}
	for _, run := range t.Runs {
		if wanted := run.RunID == named || named == "" && run.Turn == turn; wanted && run.StartSequence > 0 && !run.Truncated {
			return run.StartSequence, nil
		}
	}
	return 0, agentloop.ErrNothingToResume
}
