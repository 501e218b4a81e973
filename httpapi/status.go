package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// RemoteStatus is the answer of GET /status (document 004,
// RemoteStatusResponse).
type RemoteStatus struct {
	SessionID      string          `json:"sessionId"`
	RunID          string          `json:"runId,omitempty"`
	Status         string          `json:"status"` // running, completed, failed, interrupted or paused
	StepCount      int             `json:"stepCount"`
	Output         json.RawMessage `json:"output,omitempty"`
	State          json.RawMessage `json:"state,omitempty"` // the custom state
	Error          string          `json:"error,omitempty"`
	IsExecuting    bool            `json:"isExecuting"`
	StreamID       string          `json:"streamId"`
	LatestSequence uint64          `json:"latestSequence"` // usable as fromSequence
}

const statusRunning = "running"

func (s *Server) status(w http.ResponseWriter, r *request) error {
	live := s.loop.Live(r.session) // first: a run that ends meanwhile is then seen to have ended
	f, err := s.fold(r.Context(), r.session, 0)
	if err != nil {
		return err
	}
	status := f.remoteStatus()
	answer := RemoteStatus{
		SessionID: r.session, Status: status, StepCount: f.StepCount, Output: f.output(), State: f.CustomState,
		Error: f.failure(), IsExecuting: live && status == statusRunning, StreamID: f.StreamID, LatestSequence: f.Head,
	}
	if run := f.CurrentRun(); run != nil {
		answer.RunID = run.RunID
	}
	return s.ok(w, answer)
}

// remoteStatus maps the session's state as facts 1.2 does. A session that
// never ran, because only outside producers wrote it, is what its stream is.
func (f *folded) remoteStatus() string {
	if f.Status != projector.SessionActive {
		return string(f.Status)
	}
	if run := f.CurrentRun(); run != nil {
		switch run.Status {
		case eventlog.RunClientTool, eventlog.RunChildren, eventlog.RunStepPartial:
			return string(projector.SessionPaused)
		}
	}
	switch f.StreamStatus {
	case eventlog.StreamCompleted:
		return string(projector.SessionCompleted)
	case eventlog.StreamTerminated:
		return string(projector.SessionFailed)
	case eventlog.StreamWaiting:
		return string(projector.SessionPaused)
	}
	return statusRunning
}
