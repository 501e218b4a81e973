package drive

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// truncate appends a marker for orphans, and notifies clients. A resume without orphans
// notifies nobody.
func (t *task) truncate(ctx context.Context, e decide.Truncate) error {
	var resync *eventlog.StreamResync
	var head uint64
	var claim *projector.Claim
	t.look(func(s *projector.Session) {
		resync = record.Resync(s.LatestCheckpoint(), e.Reason)
		resync.Base = t.host.ChunkBase(s)
		head, claim = t.tree.Head, t.tree.Claim
	})
	facts := []record.Draft{t.fact(&eventlog.Truncated{
		Reason: e.Reason, Ranges: e.Ranges, AtSequence: head, FactBase: t.factBase(),
	})}
	facts = append(facts, t.discard(orphaned(claim, e.Ranges))...)
	return t.append(ctx, append(facts, t.chunk(resync))...)
}

// commitStep makes a step final and marks a checkpoint of the state so far.
func (t *task) commitStep(ctx context.Context, e decide.CommitStep) error {
	id := e.Step.ID
	base := t.base(e.Step.Number)
	reason := e.Step.StopReason.FinishReason()
	usage := e.Step.Usage
	end := &eventlog.StepEnd{
		StepID: &id, FinishReason: &reason, Base: base,
		Usage: &eventlog.StepUsage{InputTokens: usage.Prompt, OutputTokens: usage.Completion},
	}
	if usage.Cached > 0 {
		end.Usage.CachedTokens = &usage.Cached
	}
	if usage.CacheWrite > 0 {
		end.Usage.CacheWriteTokens = &usage.CacheWrite
	}
	checkpoint := record.CheckpointID(t.session, e.Step.Number, base.Timestamp)
	return t.append(ctx,
		t.chunk(end),
		t.chunk(&eventlog.StepCommitted{RunID: t.runID, StepID: id, CheckpointID: checkpoint, Base: base}),
		t.chunk(&eventlog.CheckpointCreated{RunID: t.runID, CheckpointID: checkpoint, StepCount: e.Step.Number, Base: base}),
	)
}

func (t *task) finish(ctx context.Context, e decide.Finish) error {
	var facts []record.Draft
	if e.Structured {
		facts = append(facts, t.chunk(&eventlog.Output{Output: e.Output, Base: t.base(t.step())}))
	}
	facts = append(facts, t.fact(&eventlog.RunEnded{
		RunID: t.runID, Status: eventlog.RunCompleted, Output: e.Output, FactBase: t.factBase(),
	}))
	if t.session == t.root { // a sub-agent has no stream of its own
		return t.append(ctx, append(facts, t.fact(&eventlog.StreamEnd{StreamID: t.session, Timestamp: t.host.Millis(), FinalOutput: e.Output}))...)
	}
	end := t.turnEnd(e.Output, "")
	err := t.append(ctx, append(slices.Clip(facts), end...)...)
	if len(end) > 0 && errors.Is(err, eventlog.ErrTooLarge) { // the output fits its own record, but not that one
		err = t.append(ctx, append(facts, t.turnEnd(nil, "the sub-agent's output is too large to be shown here")...)...)
	}
	return err
}

// fail ends the run with an error. Calls without a result get one: models
// refuse a conversation that lacks it.
func (t *task) fail(ctx context.Context, e decide.Fail) error {
	category, _, _ := strings.Cut(e.Code, "_")
	facts, waited, err := t.closeAll(ctx, e)
	if err != nil {
		return err
	}
	facts = append(facts, t.discard(failed)...)
	facts = append(facts, t.chunk(&eventlog.Error{
		Error: e.Message, Code: &e.Code, Recoverable: e.Retryable, Base: t.base(t.step()),
		ErrorDetail: &eventlog.ErrorDetail{Message: e.Message, Code: &e.Code, Category: &category, Retryable: &e.Retryable},
	}), t.fact(&eventlog.RunEnded{
		RunID: t.runID, Status: eventlog.RunFailed, Error: e.Message, ErrorCode: e.Code, FactBase: t.factBase(),
	}))
	if t.session == t.root {
		facts = append(facts, t.fact(&eventlog.StreamFailed{Error: e.Message, FactBase: t.factBase()}))
	}
	facts = append(facts, t.turnEnd(nil, e.Message)...)
	if err = t.append(ctx, facts...); err == nil {
		for _, c := range waited {
			c.log(slog.LevelInfo, logAborted, "code", e.Code)
		}
	}
	return err
}

// closeAll returns the results of the calls that the run's end leaves without
// one, and those of them that have waited for a person. What one append does not
// take beside the run's end it appends: a log may have steps of more than
// MaxCalls calls.
func (t *task) closeAll(ctx context.Context, e decide.Fail) (facts []record.Draft, waited []*toolCall, err error) {
	var step projector.Step
	t.look(func(s *projector.Session) {
		if s.Turn != nil && s.Turn.Step != nil {
			step = *s.Turn.Step
			step.Calls = step.Pending()
		}
	})
	for _, open := range step.Calls {
		if len(facts) > eventlog.MaxAppendRecords-endRoom {
			if err := t.append(ctx, facts...); err != nil {
				return nil, nil, err
			}
			facts = nil
		}
		c := t.newCall(step.ID, open)
		switch p := open.Pending; {
		case p == nil:
		case p.Kind == eventlog.PendingChild:
			facts = append(facts, t.childEndLeft(c, p.Child, e.Message)...)
		default:
			waited = append(waited, c)
		}
		facts = append(facts, c.result(nil, e.Code, e.Message), c.end(nil, e.Code, e.Message))
	}
	return facts, waited, nil
}

// endRoom is how many records of an append are left for the result of one more
// call, and for the run's end.
const endRoom = 10

// suspend ends the run until it is resumed. Nothing of it stays in
// memory.
func (t *task) suspend(ctx context.Context, e decide.Suspend) error {
	paused := &eventlog.RunPaused{RunID: t.runID, Reason: pauseReason(e.Calls), Base: t.base(t.step())}
	if len(e.Calls) == 1 {
		paused.PendingToolName, paused.PendingToolCallID = &e.Calls[0].Name, &e.Calls[0].ID
	}
	facts := []record.Draft{
		t.chunk(paused),
		t.fact(&eventlog.RunEnded{RunID: t.runID, Status: e.Status, FactBase: t.factBase()}),
	}
	if t.session == t.root {
		facts = append(facts, t.fact(&eventlog.StreamPaused{Reason: paused.Reason, FactBase: t.factBase()}))
	}
	return t.append(ctx, facts...)
}

func pauseReason(waiting []projector.Call) string {
	for _, c := range waiting {
		if c.Pending.Kind != eventlog.PendingChild {
			return agentloop.ReasonClientTool
		}
	}
	return agentloop.ReasonAwaitingChildren
}

// interrupt ends the run for now. Text of an answer that is not recorded stays to
// be seen until the run is resumed.
func (t *task) interrupt(ctx context.Context, e decide.Interrupt) error {
	facts := t.discard(interrupted)
	t.look(func(s *projector.Session) { facts = append(facts, t.host.Interruption(s, e.Reason)...) })
	if t.session == t.root {
		facts = append(facts, t.fact(&eventlog.StreamPaused{Reason: "interrupted", FactBase: t.factBase()}))
	}
	return t.append(ctx, facts...)
}
