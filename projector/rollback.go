package projector

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/jsondoc"
)

// restore is the part of the earlier state that a rollback's marker carries, since it
// can't be restored by cutting lists at the marker's sequence.
type restore struct {
	Sequence uint64               `json:"sequence"`
	Sessions map[string]sessionAt `json:"sessions"`
}

// sessionAt is the part of a session's state that a rollback restores.
type sessionAt struct {
	Status        SessionStatus           `json:"status"`
	StreamStatus  eventlog.StreamStatus   `json:"streamStatus"`
	CustomState   jsondoc.Doc             `json:"customState"`
	Output        json.RawMessage         `json:"output,omitempty"`
	Error         *Failure                `json:"error,omitempty"`
	CommittedAt   uint64                  `json:"committedAt"`
	StepCount     int                     `json:"stepCount"`
	TurnCount     int                     `json:"turnCount"`
	Run           *Run                    `json:"run,omitempty"` // the last one
	Turn          *Turn                   `json:"turn,omitempty"`
	Delivered     int                     `json:"delivered,omitempty"`
	Stopped       *Stopped                `json:"stopped,omitempty"`
	Terminated    bool                    `json:"terminated,omitempty"`
	SubAgentTurns map[string]SubAgentTurn `json:"subAgentTurns,omitempty"`
	// RemoteSequence: later records of a remote stream are truncated, and are read from
	// the remote server again.
	RemoteSequence uint64 `json:"remoteSequence,omitempty"`
	// RemoteCalls is the number of remote calls, RemoteOpen which of them were not
	// finished.
	RemoteCalls int      `json:"remoteCalls,omitempty"`
	RemoteOpen  []string `json:"remoteOpen,omitempty"`
	// Workspace is the snapshot of the workspace's files. WorkspaceDirty: a call may have
	// changed files after the snapshot.
	Workspace      json.RawMessage `json:"workspace,omitempty"`
	WorkspaceDirty bool            `json:"workspaceDirty,omitempty"`
}

// RestoreAt returns what the marker of a rollback to t.Head has to carry as
// eventlog.RollbackOptions.Restore. It grows with the custom states and the open steps of
// the tree, not with its conversation.
func RestoreAt(t *Tree) (json.RawMessage, error) {
	at := restore{Sequence: t.Head, Sessions: map[string]sessionAt{}}
	for _, s := range t.Sessions() {
		w := cmp.Or(s.Workspace, &Workspace{})
		at.Sessions[s.SessionID] = sessionAt{
			Status: s.Status, StreamStatus: s.StreamStatus, CustomState: s.CustomState, Output: s.Output, Error: s.Error,
			CommittedAt: s.CommittedAt, StepCount: s.StepCount, TurnCount: s.TurnCount, Run: s.CurrentRun(), Turn: s.Turn,
			Delivered: s.Delivered, Stopped: s.Stopped, Terminated: s.Terminated, SubAgentTurns: s.SubAgentTurns, RemoteSequence: s.RemoteSequence,
			RemoteCalls: len(s.RemoteCalls), RemoteOpen: s.remoteOpen(),
			Workspace: w.Snapshot, WorkspaceDirty: w.Dirty,
		}
	}
	raw, err := eventlog.Marshal(at)
	if err != nil {
		return nil, fmt.Errorf("projector: restore: %w", err)
	}
	return raw, nil
}

// rollBack makes the tree's content that of the record f.AfterSequence:
//
//   - Messages and checkpoints are cut there. Statuses, custom state, output, error, counts of
//     steps and turns, and the open turn are restored; of an unfinished answer only the part
//     that is not truncated.
//   - The run that was the last one at that record is restored, without its claims. Later runs
//     stay, marked as truncated; those that were not finished count as interrupted.
//   - A session of the tree that did not exist at that record is left empty.
//   - The following stays: the sessions' identities, usage, the claim, idempotency keys, dead
//     ranges, parked records, ResumeCount. Version rises, and the ids of removed calls are not
//     used again.
//
// If the marker can't be used, nothing changes and the reason is returned.
func (t *Tree) rollBack(f *eventlog.Truncated) string {
	var at restore
	if err := json.Unmarshal(f.Restore, &at); err != nil {
		return fmt.Sprintf("rollback: restore: %v", err)
	}
	if at.Sequence != f.AfterSequence {
		return fmt.Sprintf("rollback: restore is of sequence %d, not %d", at.Sequence, f.AfterSequence)
	}
	all := t.Sessions()
	next := make([]Session, len(all))
	for i, s := range all {
		saved, ok := at.Sessions[s.SessionID]
		if !ok {
			saved = emptyAt
		}
		var problem string
		if next[i], problem = s.backTo(f, saved); problem != "" {
			return fmt.Sprintf("rollback: session %s: %s", s.SessionID, problem)
		}
	}
	for i, s := range all {
		*s = next[i]
		for _, g := range t.Dead {
			s.truncateUnfinished(g)
		}
	}
	return ""
}

// emptyAt is the state of a session that has no records.
var emptyAt = sessionAt{Status: SessionActive, StreamStatus: eventlog.StreamActive, CustomState: emptyState}

// backTo returns s with its earlier state, or the reason why it can't be restored.
func (s *Session) backTo(f *eventlog.Truncated, at sessionAt) (Session, string) {
	back := *s
	if problem := at.problem(); problem != "" {
		return back, problem
	}
	back.TruncatedCalls = slices.Clone(s.TruncatedCalls)
	for _, m := range s.Messages {
		for _, p := range m.Parts {
			if p.ToolCall != nil && m.Sequence > f.AfterSequence {
				back.TruncatedCalls = append(back.TruncatedCalls, p.ToolCall.ID)
			}
		}
	}
	back.Asides = nil
	for _, a := range s.Asides {
		if a.Sequence <= f.AfterSequence {
			back.Asides = append(back.Asides, a)
		}
	}
	back.keepMessages(func(m Message) bool { return m.Sequence <= f.AfterSequence })
	back.Checkpoints = nil
	for _, c := range s.Checkpoints {
		if c.StreamSequence <= f.AfterSequence {
			back.Checkpoints = append(back.Checkpoints, c)
		}
	}
	if at.Turn != nil && !at.Turn.fits(f.AfterSequence, back.Messages) {
		return back, "its turn does not fit"
	}
	last := -1
	if at.Run != nil {
		last = slices.IndexFunc(s.Runs, func(r Run) bool { return r.RunID == at.Run.RunID })
		if last < 0 {
			return back, fmt.Sprintf("it has no run %s", at.Run.RunID)
		}
	}
	back.Runs = slices.Clone(s.Runs)
	for i := range back.Runs {
		switch run := &back.Runs[i]; {
		case i == last:
			claims, deleted := run.Claims, run.Deleted
			*run = *at.Run
			run.Claims, run.Deleted = claims, deleted
		case i > last:
			run.Truncated = true
			if !run.over() {
				run.Status, run.CompletedAt = fact.RunStopped, f.Timestamp
			}
		}
	}
	back.Status, back.StreamStatus, back.CustomState = at.Status, at.StreamStatus, at.CustomState
	back.Output, back.Error, back.CommittedAt = at.Output, at.Error, at.CommittedAt
	back.StepCount, back.TurnCount, back.Turn, back.Delivered = at.StepCount, at.TurnCount, at.Turn, at.Delivered
	back.RemoteSequence, back.Stopped = at.RemoteSequence, at.Stopped
	back.Terminated, back.SubAgentTurns = at.Terminated, at.SubAgentTurns
	back.remoteBack(at)
	back.Workspace = s.workspaceBack(at.Workspace, at.WorkspaceDirty)
	back.Version++
	return back, ""
}

// over reports whether the run is finished.
func (r *Run) over() bool {
	return r.Status == fact.RunCompleted || r.Status == fact.RunFailed || r.Status == fact.RunStopped
}

// problem returns why the state is invalid, or "".
func (at sessionAt) problem() string {
	switch at.Status {
	case SessionActive, SessionPaused, SessionInterrupted, SessionCompleted, SessionFailed:
	default:
		return fmt.Sprintf("unknown status %q", at.Status)
	}
	switch at.StreamStatus {
	case eventlog.StreamActive, eventlog.StreamWaiting, eventlog.StreamCompleted, eventlog.StreamTerminated:
	default:
		return fmt.Sprintf("unknown stream status %q", at.StreamStatus)
	}
	if !at.CustomState.IsObject() {
		return "its custom state is no object"
	}
	return ""
}

// fits reports whether the turn can belong to a state at seq with these messages.
func (t *Turn) fits(seq uint64, messages []Message) bool {
	if t.Before != nil && *t.Before > seq {
		return false
	}
	st := t.Step
	if st == nil || !st.Recorded {
		return true
	}
	done := 0
	for _, c := range st.Calls {
		if c.Done {
			done++
		}
	}
	return st.Message >= 0 && st.Message < len(messages)-done && messages[st.Message].Role == RoleAssistant
}
