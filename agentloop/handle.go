package agentloop

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// Handle is a run of a session (document 001). It holds nothing: any process
// can make one of the session's id.
type Handle struct {
	SessionID string
	RunID     string
	l         *Loop
}

func (l *Loop) handle(s Started) *Handle {
	return &Handle{SessionID: s.SessionID, RunID: s.RunID, l: l}
}

// Handle returns a handle of the session's last run; eventlog.ErrSessionNotFound
// if there is no session, ErrNothingToResume if it has never run.
func (l *Loop) Handle(ctx context.Context, session string) (*Handle, error) {
	t, err := l.states.Head(ctx, session)
	if err != nil {
		return nil, err
	}
	run := t.CurrentRun()
	if run == nil {
		return nil, ErrNothingToResume
	}
	return l.handle(started(session, run.RunID)), nil
}

// Result is how a run has ended, or why it waits (documents 000 and 002,
// AgentResult).
type Result struct {
	Status    eventlog.RunStatus `json:"status"`
	Output    json.RawMessage    `json:"output,omitempty"`
	Error     *projector.Failure `json:"error,omitempty"`
	Suspended *Suspended         `json:"suspended,omitempty"`
	SessionID string             `json:"sessionId"`
	RunID     string             `json:"runId"`
	StepCount int                `json:"stepCount"`
}

// Suspended is what a suspended run waits for.
type Suspended struct {
	ToolCallIDs []string       `json:"toolCallIds,omitempty"` // calls that wait for a person, in the whole tree
	StepID      string         `json:"stepId,omitempty"`      // of a step that is partly done
	Children    []WaitingChild `json:"children,omitempty"`    // sub-agents that wait
}

// WaitingChild is a suspended sub-agent.
type WaitingChild struct {
	SessionID string `json:"sessionId"`
	CallID    string `json:"callId"`
	AgentType string `json:"agentType"`
}

// Result waits until the run is over or waits.
func (h *Handle) Result(ctx context.Context) (Result, error) {
	t, err := h.l.awaitRun(ctx, h.SessionID, h.RunID)
	if err != nil {
		return Result{}, err
	}
	result := Result{SessionID: h.SessionID, RunID: h.RunID, StepCount: t.StepCount}
	for _, run := range t.Runs {
		if run.RunID == h.RunID {
			result.Status = run.Status
		}
	}
	switch result.Status {
	case eventlog.RunCompleted:
		result.Output = t.Output
	case eventlog.RunFailed:
		result.Error = t.Error
	case eventlog.RunClientTool, eventlog.RunChildren, eventlog.RunStepPartial:
		result.Suspended = suspended(t, result.Status)
	}
	return result, nil
}

func suspended(t *projector.Tree, status eventlog.RunStatus) *Suspended {
	w := &Suspended{}
	for _, a := range t.AwaitedCalls() {
		w.ToolCallIDs = append(w.ToolCallIDs, a.Call.ID)
	}
	if t.Turn == nil || t.Turn.Step == nil {
		return w
	}
	if status == eventlog.RunStepPartial {
		w.StepID = t.Turn.Step.ID
	}
	for _, c := range t.Turn.Step.Pending() {
		if c.Pending == nil || c.Pending.Kind != eventlog.PendingChild {
			continue
		}
		if child := t.Get(c.Pending.Child); child != nil {
			w.Children = append(w.Children, WaitingChild{SessionID: child.SessionID, CallID: c.ID, AgentType: child.AgentType})
		}
	}
	return w
}

// Stream yields the chunks of the session with sequence > from that survive,
// as they come, until the run is over or waits. An error is last. A
// stream_resync says that some that it has yielded were struck since.
func (h *Handle) Stream(ctx context.Context, from uint64) eventlog.Stream {
	return eventlog.Chunks(func(yield func(eventlog.Record, error) bool) {
		t, err := h.l.states.Head(ctx, h.SessionID)
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		if run := t.CurrentRun(); run == nil || run.RunID != h.RunID || !t.Running() {
			eventlog.Effective(ctx, h.l.log, h.SessionID, from, t.Head)(yield)
			return
		}
		reader, err := eventlog.NewReader(ctx, h.l.log, h.SessionID, from)
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		for {
			over := true
			for r, err := range reader.Records(ctx) {
				if _, told := errors.AsType[*eventlog.StreamTruncatedError](err); told {
					over = false
					break // what survives comes next
				}
				if !yield(r, err) || err != nil || h.ends(r) {
					return
				}
			}
			if over {
				return
			}
		}
	})
}

// ends reports whether a record ends the run.
func (h *Handle) ends(r eventlog.Record) bool {
	if r.Kind != eventlog.KindFact || r.Agent != h.SessionID {
		return false
	}
	f, err := r.Fact()
	if err != nil {
		return false
	}
	switch f := f.(type) {
	case *eventlog.RunEnded:
		return f.RunID == h.RunID
	case *eventlog.RunRequested:
		return f.RunID != h.RunID
	}
	return false
}

// Interrupt asks the run to stop for now, and waits until it has.
func (h *Handle) Interrupt(ctx context.Context, reason string) error {
	if err := h.l.Interrupt(ctx, h.SessionID, reason); err != nil {
		return err
	}
	return h.l.AwaitStop(ctx, h.SessionID)
}

// Abort ends the run for good, and waits until it has.
func (h *Handle) Abort(ctx context.Context, reason string) error {
	if err := h.l.Abort(ctx, h.SessionID, reason); err != nil {
		return err
	}
	return h.l.AwaitStop(ctx, h.SessionID)
}

// Resume continues the session; see [Loop.Resume]. req.SessionID is the
// handle's.
func (h *Handle) Resume(ctx context.Context, req ResumeRequest) (*Handle, error) {
	req.SessionID = h.SessionID
	s, err := h.l.Resume(ctx, req)
	if err != nil {
		return nil, err
	}
	return h.l.handle(s), nil
}
