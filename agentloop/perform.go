package agentloop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// truncate strikes orphans. Clients hear of it only here: a resume that
// strikes nothing says nothing (document 000).
func (r *runner) truncate(ctx context.Context, e Truncate) error {
	r.mu.RLock()
	resync := &eventlog.StreamResync{
		StepCount: r.tree.StepCount, MessageCount: len(r.tree.Messages),
		FromSequence: r.tree.CommittedAt, Reason: e.Reason, Base: r.base(r.tree.StepCount),
	}
	if cp := r.tree.LatestCheckpoint(); cp != nil {
		resync.CheckpointID = cp.ID
	}
	marker := &eventlog.Truncated{
		Reason: e.Reason, Ranges: e.Ranges, AtSequence: r.tree.Head, FactBase: r.l.factBase(r.session),
	}
	run := r.tree.Turn.RunID
	r.mu.RUnlock()
	return r.append(ctx, fact{f: marker, run: run}, fact{c: resync, run: run})
}

// commitStep makes a step final and marks a checkpoint of the state so far.
func (r *runner) commitStep(ctx context.Context, e CommitStep) error {
	id, run := e.Step.ID, r.runID()
	base := r.base(e.Step.Number)
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
	checkpoint := checkpointID(r.session, e.Step.Number, base.Timestamp)
	return r.append(ctx,
		r.chunk(end),
		r.chunk(&eventlog.StepCommitted{RunID: run, StepID: id, CheckpointID: checkpoint, Base: base}),
		r.chunk(&eventlog.CheckpointCreated{RunID: run, CheckpointID: checkpoint, StepCount: e.Step.Number, Base: base}),
	)
}

// checkpointID has the documents' form cpv1-{session}-s{step}-t{ms}-{6 hex}.
func checkpointID(session string, step int, ms int64) string {
	var b [3]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	return fmt.Sprintf("cpv1-%s-s%d-t%d-%s", session, step, ms, hex.EncodeToString(b[:]))
}

func (r *runner) finish(ctx context.Context, e Finish) error {
	run, step := r.runID(), r.step()
	var facts []fact
	if e.Structured {
		facts = append(facts, r.chunk(&eventlog.Output{Output: e.Output, Base: r.base(step)}))
	}
	return r.append(ctx, append(facts,
		fact{run: run, f: &eventlog.RunEnded{
			RunID: run, Status: eventlog.RunCompleted, Output: e.Output, FactBase: r.l.factBase(r.session),
		}},
		fact{run: run, f: &eventlog.StreamEnd{StreamID: r.session, Timestamp: r.l.now(), FinalOutput: e.Output}},
	)...)
}

func (r *runner) fail(ctx context.Context, e Fail) error {
	run := r.runID()
	return r.append(ctx,
		r.chunk(&eventlog.Error{Error: e.Message, Code: &e.Code, Base: r.base(r.step())}),
		fact{run: run, f: &eventlog.RunEnded{
			RunID: run, Status: eventlog.RunFailed, Error: e.Message, ErrorCode: e.Code, FactBase: r.l.factBase(r.session),
		}},
		fact{run: run, f: &eventlog.StreamFailed{Error: e.Message, FactBase: r.l.factBase(r.session)}},
	)
}

func (r *runner) step() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.tree.Turn == nil || r.tree.Turn.Step == nil {
		return 0
	}
	return r.tree.Turn.Step.Number
}
