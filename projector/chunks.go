package projector

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// applyChunk folds a chunk. If the chunk can't be used, it returns the reason.
func (t *Tree) applyChunk(s *Session, r eventlog.Record, c eventlog.Chunk, before uint64) string {
	if start, ok := c.(*eventlog.StepStart); ok {
		s.openStep(start, r.Run)
	}
	s.trackContent(r, before)
	s.annotate(r, c)
	switch c := c.(type) {
	case *eventlog.StatePatch:
		if err := t.patch(s, c.Patches); err != nil {
			return err.Error()
		}
	case *eventlog.CheckpointCreated:
		s.Checkpoints = append(s.Checkpoints, Checkpoint{
			ID: c.CheckpointID, RunID: c.RunID, StepCount: c.StepCount, Status: s.Status,
			Timestamp: c.Timestamp, MessageCount: len(s.Messages), StreamSequence: r.Sequence,
		})
	case *eventlog.StepCommitted:
		s.commitStep(r, c)
	case *eventlog.StepDiscarded:
		if st := s.Begun(); st != nil && st.ID == c.StepID && !st.Recorded {
			st.Discarded = true
		}
	case *eventlog.StreamResync:
		s.Resync = c.Reason
	case *eventlog.RunInterrupted:
		s.Status = SessionInterrupted
	case *eventlog.Output:
		s.Output = c.Output
	case *eventlog.Error:
		if s.Turn != nil {
			s.Turn.Retryable = c.Recoverable
		}
	case *eventlog.SubAgentStart:
		if r.Run != "" {
			s.begin(c)
		}
	case *eventlog.SubAgentEnd:
		if r.Run != "" {
			if delete(s.SubAgentTurns, c.SubSessionID); len(s.SubAgentTurns) == 0 {
				s.SubAgentTurns = nil
			}
		}
	case *eventlog.ToolApprovalResponse:
		s.deny(c)
	default:
		if r.Run != "" { // chunks of outside producers are no part of an answer
			s.stream(c)
		}
	}
	return ""
}

// begin records the beginning of a sub-agent's turn.
func (s *Session) begin(c *eventlog.SubAgentStart) {
	if s.SubAgentTurns == nil {
		s.SubAgentTurns = map[string]SubAgentTurn{}
	}
	s.SubAgentTurns[c.SubSessionID] = SubAgentTurn{CallID: c.CallID, Step: c.Step}
}

func (s *Session) openStep(c *eventlog.StepStart, run string) {
	if s.Turn == nil || c.StepID == nil {
		return
	}
	if st := s.Turn.Step; st != nil && st.ID == *c.StepID {
		st.Failure, st.Discarded, st.RunID = nil, false, run // another attempt
		return
	}
	s.Turn.Step = &Step{ID: *c.StepID, Number: c.Step, RunID: run}
}

// trackContent records where unfinished content is.
func (s *Session) trackContent(r eventlog.Record, before uint64) {
	if s.Turn == nil || !eventlog.ScopeRun.Truncates(r.Envelope) {
		return
	}
	if s.Turn.Before == nil {
		s.Turn.Before = &before
	}
	st := s.Turn.Step
	if st == nil || st.Committed {
		return
	}
	if r.Call == "" {
		if !st.Recorded {
			st.Streamed = grow(st.Streamed, r.Sequence)
		}
	} else if call := st.call(r.Call); call != nil && !call.Done && !call.Awaited() {
		call.Started = true
		call.Streamed = grow(call.Streamed, r.Sequence)
	}
}

// stream collects the parts of an answer that is not complete.
func (s *Session) stream(c eventlog.Chunk) {
	if s.Turn == nil || s.Turn.Step == nil || s.Turn.Step.Recorded {
		return
	}
	st := s.Turn.Step
	switch c := c.(type) {
	case *eventlog.TextDelta:
		st.add(PartialText, "", "", c.Delta)
	case *eventlog.Thinking:
		if !c.IsComplete {
			st.add(PartialReasoning, "", "", c.Content)
		} else if !st.close(PartialReasoning, "") {
			st.add(PartialReasoning, "", "", c.Content)
			st.close(PartialReasoning, "")
		}
	case *eventlog.SourceURL:
		st.place(PartialPart{Kind: PartialSource, Source: &fact.Source{ID: c.SourceID, URL: c.URL, Title: orEmpty(c.Title)}})
	case *eventlog.SourceDocument:
		st.place(PartialPart{Kind: PartialSource, Source: &fact.Source{
			ID: c.SourceID, MediaType: c.MediaType, Title: c.Title, Filename: orEmpty(c.Filename),
		}})
	case *eventlog.File:
		st.place(PartialPart{Kind: PartialFile, File: &fact.MessageFile{Data: c.URL, MediaType: c.MediaType}})
	case *eventlog.ToolArgStreamStart:
		st.add(PartialToolCall, c.ToolCallID, c.ToolName, "")
	case *eventlog.ToolArgStreamDelta:
		st.add(PartialToolCall, c.ToolCallID, "", c.Delta)
	case *eventlog.ToolArgStreamEnd:
		st.close(PartialToolCall, c.ToolCallID)
	}
}

func (s *Session) commitStep(r eventlog.Record, c *eventlog.StepCommitted) {
	s.commit(r.Sequence)
	s.StepCount = c.Step
	if run := s.RunOf(c.RunID); run != nil {
		run.StepCount++
	}
	if s.Turn != nil && s.Turn.Step != nil && s.Turn.Step.ID == c.StepID {
		s.Turn.Step.Committed = true
	}
}

// RunOf returns the run with an id, or nil.
func (s *Session) RunOf(id string) *Run {
	for i := len(s.Runs) - 1; i >= 0; i-- {
		if s.Runs[i].RunID == id {
			return &s.Runs[i]
		}
	}
	return nil
}
