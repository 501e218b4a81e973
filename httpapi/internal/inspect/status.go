package inspect

import (
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

const statusRunning = "running"

func (s *Routes) Status(w http.ResponseWriter, r *web.Request) error {
	t, live, err := s.executing(r)
	if err != nil {
		return err
	}
	status := remoteStatus(&t.Session)
	answer := api.Status{
		SessionID: r.Session, Status: status, StepCount: t.StepCount, Output: t.Output, State: t.CustomState.Bytes(),
		Error: stream.FailureOf(&t.Session), IsExecuting: live, StreamID: t.StreamID, LatestSequence: t.Head,
	}
	if run := t.CurrentRun(); run != nil {
		answer.RunID = run.RunID
	}
	return r.OK(w, answer)
}

// executing returns the session's state, and whether a node drives its run. It reads the
// state again if the run seems abandoned, since it may just have ended.
func (s *Routes) executing(r *web.Request) (t *projector.Tree, live bool, err error) {
	for range 2 {
		if t, err = s.states.Head(r.Context(), r.Session); err != nil {
			return nil, false, err
		}
		if live = s.loop.Executing(r.Context(), t); live || !t.Running() {
			break
		}
	}
	return t, live, nil
}

// remoteStatus returns the status of GET /status for a session's state (see
// docs/reference/protocol.md#statuses).
func remoteStatus(s *projector.Session) string {
	if s.Status != projector.SessionActive {
		return string(s.Status)
	}
	if run := s.CurrentRun(); run != nil && run.Suspended() {
		return string(projector.SessionPaused)
	}
	if stream.Waiting(s) != "" || awaitsMessage(s) {
		return string(projector.SessionPaused)
	}
	return statusRunning
}

// awaitsMessage reports whether the session has no run because a rollback removed it or
// because the session is a fork. A session that only outside producers write has no run
// either, but its stream is live.
func awaitsMessage(s *projector.Session) bool {
	return !s.StreamStatus.Terminal() && s.Turn == nil && s.CurrentRun() == nil && (len(s.Runs) > 0 || s.ForkedFrom != nil)
}
