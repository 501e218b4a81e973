package record

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Clock makes records: it has the time, ids, and how long after its last request a
// session expires.
type Clock struct {
	Now         func() time.Time
	NewID       func() string // unique for all time
	ExpireAfter time.Duration // 0: never
}

// Millis is the time in ms since the epoch.
func (c Clock) Millis() int64 { return c.Now().UnixMilli() }

// FactBase is that of a fact of a session now.
func (c Clock) FactBase(session string) fact.Base {
	return fact.Base{SessionID: session, Timestamp: c.Millis()}
}

// Messages returns the records of messages that are of a run, or of none.
func (c Clock) Messages(session, run string, messages []agentloop.Input) []Draft {
	var facts []Draft
	for _, m := range messages {
		if m.Added != nil {
			added := *m.Added
			added.Base = c.FactBase(session)
			facts = append(facts, Draft{Run: run, Fact: &added})
			continue
		}
		facts = append(facts, Draft{Run: run, Fact: &fact.UserMessage{
			Content: m.Content, Files: m.Files, Metadata: m.Metadata, MessageID: m.MessageID, Base: c.FactBase(session),
		}})
	}
	return facts
}

// NewRun returns the records of a request: the messages, then the run.
func (c Clock) NewRun(session string, mode fact.RunMode, messages []agentloop.Input) []Draft {
	run := "run-" + c.NewID()
	facts := c.Messages(session, run, messages)
	asked := &fact.RunRequested{RunID: run, Mode: mode, Base: c.FactBase(session)}
	if c.ExpireAfter > 0 {
		asked.ExpiresAt = asked.Timestamp + c.ExpireAfter.Milliseconds()
	}
	return append(facts, Draft{Run: run, Fact: asked})
}

// Resumed says to clients that run continues the session.
func (c Clock) Resumed(s *projector.Session, run string, mode fact.RunMode) Draft {
	return Draft{Run: run, Chunk: &eventlog.RunResumed{
		RunID: run, FromStepCount: s.StepCount, FromCheckpointID: latestCheckpoint(s), Mode: string(mode), Base: c.ChunkBase(s),
	}}
}

// ChunkBase is that of a chunk of a session now.
func (c Clock) ChunkBase(s *projector.Session) eventlog.Base {
	return eventlog.Base{AgentID: s.SessionID, AgentType: s.AgentType, Timestamp: c.Millis(), Step: s.StepCount}
}

func latestCheckpoint(s *projector.Session) *string {
	if cp := s.LatestCheckpoint(); cp != nil {
		return new(cp.ID)
	}
	return nil
}

// Resync notifies clients to which checkpoint a session has gone back, nil: there
// is none.
func Resync(cp *projector.Checkpoint, reason eventlog.ResyncReason) *eventlog.StreamResync {
	if cp == nil {
		return &eventlog.StreamResync{Reason: reason}
	}
	return &eventlog.StreamResync{
		CheckpointID: cp.ID, StepCount: cp.StepCount, MessageCount: cp.MessageCount, FromSequence: cp.StreamSequence,
		Reason: reason,
	}
}

// CheckpointID returns an id of the form cpv1-{session}-s{step}-t{ms}-{6 hex}.
func CheckpointID(session string, step int, ms int64) string {
	var b [3]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return fmt.Sprintf("cpv1-%s-s%d-t%d-%s", session, step, ms, hex.EncodeToString(b[:]))
}

// Interruption ends a session's run for now, with a checkpoint of what is
// durable: to go back to it repeats nothing.
func (c Clock) Interruption(s *projector.Session, reason string) []Draft {
	run, base := s.Turn.RunID, c.ChunkBase(s)
	if s.Turn.Step != nil {
		base.Step = s.Turn.Step.Number
	}
	checkpoint := CheckpointID(s.SessionID, s.StepCount, base.Timestamp)
	interrupted := &eventlog.RunInterrupted{RunID: run, CheckpointID: &checkpoint, Base: base}
	if reason != "" {
		interrupted.Reason = &reason
	}
	return []Draft{
		{Run: run, Chunk: &eventlog.CheckpointCreated{RunID: run, CheckpointID: checkpoint, StepCount: s.StepCount, Base: base}},
		{Run: run, Chunk: interrupted},
		{Run: run, Fact: &fact.RunEnded{RunID: run, Status: fact.RunStopped, Base: c.FactBase(s.SessionID)}},
	}
}

// Discarded records that a step of the session ends without a step_end.
func (c Clock) Discarded(s *projector.Session, step *projector.Step, reason string) Draft {
	run := cmp.Or(step.RunID, s.Turn.RunID)
	base := c.ChunkBase(s)
	base.Step = step.Number
	return Draft{Chunk: &eventlog.StepDiscarded{RunID: run, StepID: step.ID, Reason: reason, Base: base}}
}

// TakenBack discards the steps that a rollback ends: those that are open now, unless
// their answer is recorded in then, and those whose answer was streaming in then.
func (c Clock) TakenBack(now, then *projector.Tree) (facts []Draft) {
	for _, s := range now.Sessions() {
		var kept *projector.Step
		if past := then.Get(s.SessionID); past != nil {
			if kept = past.Begun(); kept != nil && !kept.Recorded {
				facts = append(facts, c.Discarded(past, kept, eventlog.DiscardRollback))
			}
		}
		if step := s.Begun(); step != nil && (kept == nil || kept.ID != step.ID) {
			facts = append(facts, c.Discarded(s, step, eventlog.DiscardRollback))
		}
	}
	return facts
}

// AbandonAll answers all open calls of a tree: the user continues without.
func (c Clock) AbandonAll(t *projector.Tree) []Draft {
	var facts []Draft
	for _, s := range t.Sessions() {
		facts = append(facts, c.Abandon(s)...)
	}
	return facts
}

// Abandon answers the open calls of one session.
func (c Clock) Abandon(s *projector.Session) []Draft {
	var facts []Draft
	for call := range s.OpenCalls() {
		if call.Awaited() {
			facts = append(facts, Draft{Agent: s.SessionID, Run: call.RunID, Fact: &fact.ResultSubmitted{
				ToolCallID: call.ID, Kind: fact.SubmitAbandoned, Base: c.FactBase(s.SessionID),
			}})
		}
	}
	return facts
}

// ConfirmAll decides all open approvals of a tree.
func (c Clock) ConfirmAll(t *projector.Tree, approved bool) []Draft {
	var facts []Draft
	for _, a := range t.AwaitedCalls() {
		if a.Call.Pending.Kind == fact.PendingApproval {
			facts = append(facts, Draft{Agent: a.Session.SessionID, Run: a.Call.RunID, Fact: &fact.ResultSubmitted{
				ToolCallID: a.Call.ID, Kind: fact.SubmitApproval, Approved: approved, Base: c.FactBase(a.Session.SessionID),
			}})
		}
	}
	return facts
}
