package memory

import (
	"context"
	"errors"
	"fmt"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/projector/readmodel"
)

// How pending memories are embedded: the most that one call of the embedder
// gets.
const (
	maxBatch      = 64
	maxBatchBytes = 128 << 10
)

// ErrEmbedderOut: the embedder fails for every text, or accepts no more for
// now.
var ErrEmbedderOut = errors.New("memory: the embedder is out")

// probe is a text that every embedder takes.
const probe = "hello"

// Processed is what [Manager.ProcessUnembedded] has done.
type Processed struct {
	Found    int `json:"found"` // pending memories that were tried
	Embedded int `json:"embedded"`
	Failed   int `json:"failed"` // they stay pending
}

// ProcessUnembedded computes the vectors of all memories that have none of the
// embedder's model: those of an outage, of a process that died, of a queue that
// was full, of the time before another model. A text that the embedder refuses
// does not keep others from theirs. It stops when the embedder is out, which means
// that it also fails for a test text, or limits the rate.
// Several nodes may do it at once; on one it is done one at a time.
//
// Errors: ErrEmbedderOut, with the embedder's own; the index's, readmodel.ErrUnavailable
// also while it is made again; the log's; ctx's.
// Processed is right with an error, too.
func (m *Manager) ProcessUnembedded(ctx context.Context) (Processed, error) {
	var done Processed
	if m.opts.Embedder == nil {
		return done, nil
	}
	select {
	case m.processing <- struct{}{}:
		defer func() { <-m.processing }()
	case <-ctx.Done():
		return done, context.Cause(ctx)
	}
	for after := (readmodel.PendingCursor{}); ; {
		answer, err := m.opts.Index.PendingMemories(ctx, m.model(), after, maxBatch)
		switch {
		case err != nil:
			return done, err
		case answer.Fresh.Rebuilding: // it has not seen yet which have vectors
			return done, readmodel.ErrUnavailable
		case len(answer.Value.Items) == 0:
			return done, nil
		}
		for _, batch := range batches(answer.Value.Items) {
			if err := m.process(ctx, batch, answer.Value.Heads[batch[0].Scope.LogID()], &done); err != nil {
				return done, err
			}
		}
		last := answer.Value.Items[len(answer.Value.Items)-1]
		after = readmodel.PendingCursor{Log: last.Scope.LogID(), Sequence: last.Sequence}
	}
}

// batches divides memories, so that each batch is of one scope and not too large.
func batches(memories []readmodel.Memory) (all [][]readmodel.Memory) {
	from, bytes := 0, 0
	for i, memory := range memories {
		if i > from && (memory.Scope != memories[from].Scope || bytes+len(memory.Content) > maxBatchBytes) {
			all = append(all, memories[from:i])
			from, bytes = i, 0
		}
		bytes += len(memory.Content)
	}
	return append(all, memories[from:])
}

// process embeds a batch or, if that fails, each of it on its own. What is gone
// since the index knew the log up to head is left out. The error ends it all.
func (m *Manager) process(ctx context.Context, batch []readmodel.Memory, head uint64, done *Processed) error {
	forgotten, err := m.forgottenSince(ctx, batch[0].Scope.LogID(), head)
	switch {
	case errors.Is(err, readmodel.ErrNoMemory):
		return nil
	case err != nil:
		return err
	}
	if batch = without(forgotten, batch); len(batch) == 0 {
		return nil
	}
	texts := make([]string, len(batch))
	for i, memory := range batch {
		texts[i] = memory.Content
	}
	vectors, err := m.embed(ctx, EmbedTimeout, ofMemory, texts...)
	if err == nil {
		done.Found += len(batch)
		err = m.store(ctx, batch, vectors)
		switch {
		case err == nil:
			done.Embedded += len(batch)
		case errors.Is(err, readmodel.ErrNoMemory): // erased meanwhile
			return nil
		default:
			done.Failed += len(batch)
		}
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := err
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Code != model.CodeRateLimited {
		_, out = m.embed(ctx, EmbedTimeout, ofProbe, probe)
	}
	if out != nil {
		done.Found, done.Failed = done.Found+len(batch), done.Failed+len(batch)
		return fmt.Errorf("%w: %w", ErrEmbedderOut, out)
	}
	if len(batch) == 1 {
		done.Found, done.Failed = done.Found+1, done.Failed+1
		m.stayPending(batch[0], err)
		return nil
	}
	for i := range batch {
		if err := m.process(ctx, batch[i:i+1], head, done); err != nil {
			return err
		}
	}
	return nil
}
