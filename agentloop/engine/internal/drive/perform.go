package drive

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine/internal/record"
	"github.com/helixd/helixd/agentloop/internal/decide"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
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
		Reason: e.Reason, Ranges: e.Ranges, AtSequence: head, Base: t.factBase(),
	})}
	facts = append(facts, t.discard(orphaned(claim, e.Ranges))...)
	return t.append(ctx, append(facts, t.chunk(resync))...)
}

// appendOn appends facts and, in the same append, the end of the step or of the run that
// the driver would decide on next: each append waits for the disk. If they can't be appended
// together, because another writer was faster or they are too large, the facts are appended
// alone, and the driver decides.
func (t *task) appendOn(ctx context.Context, facts ...record.Draft) error {
	entries, err := record.Entries(t.session, facts)
	if err != nil {
		return err
	}
	if more, still := t.foresee(facts, entries); len(more) > 0 {
		err := t.appendEntries(ctx, still, slices.Concat(entries, more))
		if !errors.Is(err, eventlog.ErrStale) && !errors.Is(err, eventlog.ErrTooLarge) {
			return err
		}
	}
	return t.appendEntries(ctx, t.still, entries)
}

// Up to so many messages and sub-agents the end of a step is foreseen: of larger trees a
// copy costs more than an append.
const (
	maxImaginedMessages = 2000
	maxImaginedChildren = 50
)

// imagined returns a copy of the tree, if facts may end a step, and what other writers have
// written so far. Hooks and a suspected tree get each decision by itself.
func (t *task) imagined(facts []record.Draft) (tree *projector.Tree, others uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.tree.Get(t.session)
	if s == nil || t.probation != nil || len(t.tree.Children) > maxImaginedChildren || len(s.Messages) > maxImaginedMessages || len(t.hooks.Of(s)) > 0 {
		return nil, 0
	}
	for _, x := range facts {
		switch f := x.Fact.(type) {
		case *fact.ModelTurn:
			if f.StopReason == fact.StopToolUse {
				return nil, 0 // its calls come first
			}
		case *fact.ToolResult:
			if s.Turn == nil || s.Turn.Step == nil || len(s.Turn.Step.Pending()) > 1 {
				return nil, 0 // so do other calls
			}
		}
	}
	return t.tree.Clone(), t.others
}

// foresee returns the end of the step and of the run that follow if facts, whose entries are
// given, are appended now; it is void if still says no.
func (t *task) foresee(facts []record.Draft, entries []eventlog.Entry) (more []eventlog.Entry, still func() bool) {
	defer func() {
		if p := recover(); p != nil { // the facts are appended first; then the driver meets the same
			more, still = nil, nil
		}
	}()
	tree, others := t.imagined(facts)
	if tree == nil {
		return nil, nil
	}
	d := decide.Decider{Agents: t.defs, RetryDelay: t.host.RetryDelay, Busy: func(string) bool { return true }}
	for next := entries; len(next) > 0; more = append(more, next...) {
		for _, e := range next {
			e.Writer = t.id
			projector.Apply(tree, eventlog.Record{Sequence: tree.Head + 1, Time: time.UnixMilli(t.host.Millis()), Entry: e})
		}
		effects := slices.DeleteFunc(d.Decide(tree), func(e decide.Effect) bool { return e.About() != t.session })
		if next = nil; len(effects) == 1 {
			var err error
			if next, err = record.Entries(t.session, t.end(effects[0])); err != nil {
				return nil, nil
			}
		}
	}
	return more, func() bool {
		if t.still != nil && !t.still() {
			return false
		}
		t.mu.RLock()
		defer t.mu.RUnlock()
		return t.others == others
	}
}

// end returns the facts of an effect that ends a step, or the root's run.
func (t *task) end(e decide.Effect) []record.Draft {
	switch e := e.(type) {
	case decide.CommitStep:
		return t.stepEnd(e)
	case decide.Finish:
		if t.session == t.root {
			return t.runEnd(e)
		}
	}
	return nil
}

// stepEnd makes a step final and marks a checkpoint of the state so far.
func (t *task) stepEnd(e decide.CommitStep) []record.Draft {
	id := e.Step.ID
	base := t.base(e.Step.Number)
	reason := eventlog.FinishReasonOf(e.Step.StopReason)
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
	return []record.Draft{
		t.chunk(end),
		t.chunk(&eventlog.StepCommitted{RunID: t.runID, StepID: id, CheckpointID: checkpoint, Base: base}),
		t.chunk(&eventlog.CheckpointCreated{RunID: t.runID, CheckpointID: checkpoint, StepCount: e.Step.Number, Base: base}),
	}
}

// runEnd ends a run whose output is there, and the root's stream with it: a sub-agent
// has none of its own.
func (t *task) runEnd(e decide.Finish) (facts []record.Draft) {
	if e.Structured {
		facts = append(facts, t.chunk(&eventlog.Output{Output: e.Output, Base: t.base(t.step())}))
	}
	facts = append(facts, t.fact(&fact.RunEnded{
		RunID: t.runID, Status: fact.RunCompleted, Output: e.Output, Base: t.factBase(),
	}))
	if t.session == t.root {
		facts = append(facts, t.fact(&fact.StreamEnd{StreamID: t.session, Timestamp: t.host.Millis(), FinalOutput: e.Output}))
	}
	return facts
}

func (t *task) finish(ctx context.Context, e decide.Finish) error {
	facts := t.runEnd(e)
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
	}), t.fact(&fact.RunEnded{
		RunID: t.runID, Status: fact.RunFailed, Error: e.Message, ErrorCode: e.Code, Base: t.factBase(),
	}))
	if t.session == t.root {
		facts = append(facts, t.fact(&fact.StreamFailed{Error: e.Message, Base: t.factBase()}))
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
		case p.Kind == fact.PendingChild:
			facts = append(facts, t.childEndLeft(c, p.Child, e.Message)...)
		default:
			waited = append(waited, c)
		}
		facts = append(facts, c.ended(nil, e.Code, e.Message)...)
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
		t.fact(&fact.RunEnded{RunID: t.runID, Status: e.Status, Base: t.factBase()}),
	}
	if t.session == t.root {
		facts = append(facts, t.fact(&fact.StreamPaused{Reason: paused.Reason, Base: t.factBase()}))
	}
	return t.append(ctx, facts...)
}

func pauseReason(waiting []projector.Call) string {
	for _, c := range waiting {
		if c.Pending.Kind != fact.PendingChild {
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
		facts = append(facts, t.fact(&fact.StreamPaused{Reason: "interrupted", Base: t.factBase()}))
	}
	return t.append(ctx, facts...)
}
