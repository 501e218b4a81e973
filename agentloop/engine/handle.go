package engine

import (
	"context"
	"encoding/json"
	"errors"
	"iter"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Handle is a run of a session. It holds nothing: any process
// can make one of the session's id.
type Handle struct {
	SessionID string
	RunID     string
	l         *Loop
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
		return nil, agentloop.ErrNothingToResume
	}
	return &Handle{SessionID: session, RunID: run.RunID, l: l}, nil
}

// Result is how a run has ended, or why it waits.
type Result struct {
	Status    fact.RunStatus     `json:"status"`
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

// Result waits until the run is finished or waits. It is the result of this run,
// even if the session has continued since.
//
// Errors: eventlog.ErrSessionNotFound, also if the session was erased and created
// again; *eventlog.TrimmedError if retention has removed the records of an
// earlier run; and what the log returns.
func (h *Handle) Result(ctx context.Context) (Result, error) {
	t, err := h.untilIdle(ctx)
	if err != nil {
		return Result{}, err
	}
	run := t.RunOf(h.RunID)
	if run == nil {
		return Result{}, eventlog.ErrSessionNotFound
	}
	status := run.Status
	if t.CurrentRun() != run {
		if t, err = h.stateAtEnd(ctx, t, run); err != nil {
			return Result{}, err
		}
	}
	result := Result{SessionID: h.SessionID, RunID: h.RunID, StepCount: t.StepCount, Status: status}
	switch status {
	case fact.RunCompleted:
		result.Output = t.Output
	case fact.RunFailed:
		result.Error = t.Error
	case fact.RunClientTool, fact.RunChildren, fact.RunStepPartial:
		result.Suspended = suspended(t, status)
	}
	return result, nil
}

// untilIdle returns the state in which the run is finished or waits, or is not the
// last one any more.
func (h *Handle) untilIdle(ctx context.Context) (*projector.Tree, error) {
	return h.l.requests.Await(ctx, h.SessionID, func(t *projector.Tree) bool {
		last := t.CurrentRun()
		return last == nil || !t.Running() || last.RunID != h.RunID
	})
}

// stateAtEnd returns the state in which a run that is not the session's last one
// ended. What a rollback has truncated counts if the run itself is part of it.
func (h *Handle) stateAtEnd(ctx context.Context, t *projector.Tree, run *projector.Run) (*projector.Tree, error) {
	last := run.StartSequence
	for r, err := range h.l.log.Read(ctx, h.SessionID, run.StartSequence, t.Head) {
		if err != nil {
			return nil, err
		}
		if !run.Truncated && t.Dead.Covers(r) {
			continue
		}
		end := h.endOf(r)
		if end != nextRun {
			last = r.Sequence
		}
		if end != noEnd {
			break
		}
	}
	return h.l.states.At(ctx, h.SessionID, last)
}

func suspended(t *projector.Tree, status fact.RunStatus) *Suspended {
	w := &Suspended{}
	for _, a := range t.AwaitedCalls() {
		w.ToolCallIDs = append(w.ToolCallIDs, a.Call.ID)
	}
	if t.Turn == nil || t.Turn.Step == nil {
		return w
	}
	if status == fact.RunStepPartial {
		w.StepID = t.Turn.Step.ID
	}
	for _, c := range t.Turn.Step.Pending() {
		if c.Pending == nil || c.Pending.Kind != fact.PendingChild {
			continue
		}
		if child := t.Get(c.Pending.Child); child != nil {
			w.Children = append(w.Children, WaitingChild{SessionID: child.SessionID, CallID: c.ID, AgentType: child.AgentType})
		}
	}
	return w
}

// Stream yields the run's chunks, those of its sub-agents included, with
// sequence > from that survive, as they come, until the run is finished or waits.
// From 0 it begins with the run: chunks of other runs are not in it, and neither
// are those that a resumed session produces in its next run. An error is last. A
// stream_resync reports that chunks which were yielded are truncated.
//
// Errors: as Result, and *eventlog.CursorAheadError if from is after the head.
func (h *Handle) Stream(ctx context.Context, from uint64) eventlog.Stream {
	return eventlog.Chunks(func(yield func(eventlog.Record, error) bool) {
		t, err := h.l.states.Head(ctx, h.SessionID)
		if err != nil {
			yield(eventlog.Record{}, err)
			return
		}
		run := t.RunOf(h.RunID)
		switch {
		case run == nil:
			yield(eventlog.Record{}, eventlog.ErrSessionNotFound)
		case from > t.Head:
			yield(eventlog.Record{}, eventlog.CursorError(ctx, h.l.log, h.SessionID, from))
		case t.CurrentRun() == run && t.Running():
			h.follow(ctx, run, max(from, run.StartSequence), yield)
		default:
			h.replay(ctx, t, run, from, yield)
		}
	})
}

// Text yields the text of the run's agent as it comes, without that of its sub-agents, until
// the run is finished or waits. An error is last. Text that a failure of the model has
// truncated was yielded before: programs that take it back use [Handle.Stream].
//
// Errors: as Stream.
func (h *Handle) Text(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for c, err := range h.Stream(ctx, 0) {
			text, ok := c.Chunk.(*eventlog.TextDelta)
			if err == nil && (!ok || text.AgentID != h.SessionID) {
				continue
			}
			if err != nil {
				yield("", err)
				return
			}
			if !yield(text.Delta, nil) {
				return
			}
		}
	}
}

// replay yields the records of a run that has ended. It reads from the run's
// start, whatever the cursor: that is how it knows where the run ended.
func (h *Handle) replay(ctx context.Context, t *projector.Tree, run *projector.Run, from uint64, yield func(eventlog.Record, error) bool) {
	ends := h.untilEnd(run)
	for r, err := range h.l.log.Read(ctx, h.SessionID, run.StartSequence, t.Head) {
		if err == nil && t.Dead.Covers(r) {
			continue
		}
		if (err != nil || r.Sequence > from) && !yield(r, err) || err != nil || ends(r) {
			return
		}
	}
}

// follow yields the records of a run that continues.
func (h *Handle) follow(ctx context.Context, run *projector.Run, from uint64, yield func(eventlog.Record, error) bool) {
	reader, err := eventlog.NewReader(ctx, h.l.log, h.SessionID, from)
	if err != nil {
		yield(eventlog.Record{}, err)
		return
	}
	ends := h.untilEnd(run)
	for again := true; again; {
		again = false
		for r, err := range reader.Records(ctx) {
			if _, truncated := errors.AsType[*eventlog.StreamTruncatedError](err); truncated {
				again = true
				break // what survives comes next
			}
			if !yield(r, err) || err != nil || ends(r) {
				return
			}
		}
	}
}

// untilEnd returns what reports, record by record, that one ends the run's
// stream: its end, the next run's request, or the stream_resync of a rollback to
// before the run.
func (h *Handle) untilEnd(run *projector.Run) func(eventlog.Record) bool {
	takenBack, start := false, run.StartSequence
	return func(r eventlog.Record) bool {
		if r.Kind == eventlog.KindFact && r.Type == (*eventlog.Truncated)(nil).Type() {
			f, err := r.Fact()
			marker, ok := f.(*eventlog.Truncated)
			takenBack = takenBack || err == nil && ok && 0 < marker.AfterSequence && marker.AfterSequence <= start
		}
		return h.endOf(r) != noEnd || takenBack && r.Type == (*eventlog.StreamResync)(nil).Type()
	}
}

// runEnd is how a record ends a run.
type runEnd int

const (
	noEnd   runEnd = iota
	ownEnd         // it is the run's run_ended
	nextRun        // it requests another run
)

func (h *Handle) endOf(r eventlog.Record) runEnd {
	if r.Kind != eventlog.KindFact || r.Agent != h.SessionID {
		return noEnd
	}
	f, err := r.Fact()
	if err != nil {
		return noEnd
	}
	switch f := f.(type) {
	case *fact.RunEnded:
		if f.RunID == h.RunID {
			return ownEnd
		}
	case *fact.RunRequested:
		if f.RunID != h.RunID {
			return nextRun
		}
	}
	return noEnd
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
	return &Handle{SessionID: s.SessionID, RunID: s.RunID, l: h.l}, nil
}
