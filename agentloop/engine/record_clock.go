package engine

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// maker makes records: it has the time, ids, and how long after its last request a
// session expires.
type maker struct {
	Now         func() time.Time
	NewID       func() string // unique for all time
	ExpireAfter time.Duration // 0: never
}

func (c maker) now() int64 { return c.Now().UnixMilli() }

func (c maker) factBase(session string) eventlog.FactBase {
	return eventlog.FactBase{SessionID: session, Timestamp: c.now()}
}

// newRun returns the records of a request: the messages, then the run.
func (c maker) newRun(session string, mode eventlog.RunMode, messages []agentloop.Input) []fact {
	run := "run-" + c.NewID()
	var facts []fact
	for _, m := range messages {
		facts = append(facts, fact{run: run, f: &eventlog.UserMessage{
			Content: m.Content, Files: m.Files, Metadata: m.Metadata, MessageID: m.MessageID, FactBase: c.factBase(session),
		}})
	}
	asked := &eventlog.RunRequested{RunID: run, Mode: mode, FactBase: c.factBase(session)}
	if c.ExpireAfter > 0 {
		asked.ExpiresAt = asked.Timestamp + c.ExpireAfter.Milliseconds()
	}
	return append(facts, fact{run: run, f: asked})
}

// resumed tells clients that run goes on with the session.
func (c maker) resumed(s *projector.Session, run string, mode eventlog.RunMode) fact {
	return fact{run: run, c: &eventlog.RunResumed{
		RunID: run, FromStepCount: s.StepCount, FromCheckpointID: latestCheckpoint(s), Mode: string(mode), Base: c.chunkBase(s),
	}}
}

func (c maker) chunkBase(s *projector.Session) eventlog.Base {
	return eventlog.Base{AgentID: s.SessionID, AgentType: s.AgentType, Timestamp: c.now(), Step: s.StepCount}
}

func latestCheckpoint(s *projector.Session) *string {
	cp := s.LatestCheckpoint()
	if cp == nil {
		return nil
	}
	id := cp.ID
	return &id
}

// resyncOf notifies clients to which checkpoint a session has gone back, nil: there
// is none.
func resyncOf(cp *projector.Checkpoint, reason eventlog.ResyncReason) *eventlog.StreamResync {
	if cp == nil {
		return &eventlog.StreamResync{Reason: reason}
	}
	return &eventlog.StreamResync{
		CheckpointID: cp.ID, StepCount: cp.StepCount, MessageCount: cp.MessageCount, FromSequence: cp.StreamSequence,
		Reason: reason,
	}
}

// checkpointID has the documents' form cpv1-{session}-s{step}-t{ms}-{6 hex}.
func checkpointID(session string, step int, ms int64) string {
	var b [3]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return fmt.Sprintf("cpv1-%s-s%d-t%d-%s", session, step, ms, hex.EncodeToString(b[:]))
}

// interruption ends a session's run for now, with a checkpoint of what is
// durable: to go back to it repeats nothing.
func (c maker) interruption(s *projector.Session, reason string) []fact {
	run, base := s.Turn.RunID, c.chunkBase(s)
	if s.Turn.Step != nil {
		base.Step = s.Turn.Step.Number
	}
	checkpoint := checkpointID(s.SessionID, s.StepCount, base.Timestamp)
	told := &eventlog.RunInterrupted{RunID: run, CheckpointID: &checkpoint, Base: base}
	if reason != "" {
		told.Reason = &reason
	}
	return []fact{
		{run: run, c: &eventlog.CheckpointCreated{RunID: run, CheckpointID: checkpoint, StepCount: s.StepCount, Base: base}},
		{run: run, c: told},
		{run: run, f: &eventlog.RunEnded{RunID: run, Status: eventlog.RunStopped, FactBase: c.factBase(s.SessionID)}},
	}
}

// discarded records that a step of the session ends without a step_end.
func (c maker) discarded(s *projector.Session, step *projector.Step, reason string) fact {
	run := cmp.Or(step.RunID, s.Turn.RunID)
	base := c.chunkBase(s)
	base.Step = step.Number
	return fact{c: &eventlog.StepDiscarded{RunID: run, StepID: step.ID, Reason: reason, Base: base}}
}

// takenBack discards the steps that a rollback ends: those that are open now, unless
// their answer is recorded in then, and those whose answer was streaming in then.
func (c maker) takenBack(now, then *projector.Tree) (facts []fact) {
	for _, s := range now.Sessions() {
		var kept *projector.Step
		if past := then.Get(s.SessionID); past != nil {
			if kept = past.Begun(); kept != nil && !kept.Recorded {
				facts = append(facts, c.discarded(past, kept, eventlog.DiscardRollback))
			}
		}
		if step := s.Begun(); step != nil && (kept == nil || kept.ID != step.ID) {
			facts = append(facts, c.discarded(s, step, eventlog.DiscardRollback))
		}
	}
	return facts
}

// abandonAll answers all open calls of a tree: the user goes on without.
func (c maker) abandonAll(t *projector.Tree) []fact {
	var facts []fact
	for _, s := range t.Sessions() {
		facts = append(facts, about(s.SessionID, c.abandon(s))...)
	}
	return facts
}

// abandon answers the open calls of one session.
func (c maker) abandon(s *projector.Session) []fact {
	var facts []fact
	if s.Turn == nil || s.Turn.Step == nil {
		return nil
	}
	for _, call := range s.Turn.Step.Calls {
		if call.Awaited() {
			facts = append(facts, fact{run: call.RunID, f: &eventlog.ResultSubmitted{
				ToolCallID: call.ID, Kind: eventlog.SubmitAbandoned, FactBase: c.factBase(s.SessionID),
			}})
		}
	}
	return facts
}

// confirmAll decides all open approvals of a tree.
func (c maker) confirmAll(t *projector.Tree, approved bool) []fact {
	var facts []fact
	for _, a := range t.AwaitedCalls() {
		if a.Call.Pending.Kind == eventlog.PendingApproval {
			facts = append(facts, about(a.Session.SessionID, []fact{{run: a.Call.RunID, f: &eventlog.ResultSubmitted{
				ToolCallID: a.Call.ID, Kind: eventlog.SubmitApproval, Approved: approved, FactBase: c.factBase(a.Session.SessionID),
			}}})...)
		}
	}
	return facts
}
