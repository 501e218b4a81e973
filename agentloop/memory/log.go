package memory

import (
	"context"
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// lookUp returns a memory as the index has it or, if that is behind or can't be
// asked, as the log has it. Errors: readmodel.ErrNoMemory; those of the log.
func (m *Manager) lookUp(ctx context.Context, scope eventlog.MemoryScope, id string) (readmodel.Memory, error) {
	answer, err := m.opts.Index.Memory(ctx, scope, id, m.model())
	switch {
	case err == nil, errors.Is(err, readmodel.ErrNoMemory) && answer.Fresh.Current:
		return answer.Value, err
	case ctx.Err() != nil:
		return readmodel.Memory{}, context.Cause(ctx)
	}
	return m.fromLog(ctx, scope, id)
}

// fromLog reads all of a scope for one memory.
func (m *Manager) fromLog(ctx context.Context, scope eventlog.MemoryScope, id string) (readmodel.Memory, error) {
	var memory readmodel.Memory
	for r, err := range m.opts.Log.Read(ctx, scope.LogID(), 0, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			break
		}
		if err != nil {
			return readmodel.Memory{}, err
		}
		fact, err := r.Fact()
		if err != nil {
			continue // as the index does
		}
		switch f := fact.(type) {
		case *eventlog.MemorySaved:
			if f.MemoryID == id && memory.ID == "" {
				memory = memoryOf(scope, f, r.Sequence)
			}
		case *eventlog.MemoryEmbedded:
			if f.MemoryID == id && memory.ID != "" && f.Model == m.model() {
				memory.EmbeddingStatus = readmodel.EmbeddingComplete
			}
		case *eventlog.MemoryForgotten:
			if f.MemoryID == id {
				memory = readmodel.Memory{}
			}
		}
	}
	if memory.ID == "" {
		return readmodel.Memory{}, readmodel.ErrNoMemory
	}
	return memory, nil
}

// amend appends facts about memories of a log, in which saved is the sequence
// of one of them. A log that was erased since, and perhaps begun anew, is left
// alone. Errors: readmodel.ErrNoMemory for such a log; the log's.
func (m *Manager) amend(ctx context.Context, log string, saved uint64, facts ...eventlog.Fact) error {
	entries := make([]eventlog.Entry, len(facts))
	for i, f := range facts {
		var err error
		if entries[i], err = eventlog.NewFact(log, f, eventlog.Labels{}); err != nil {
			return err
		}
	}
	writer := "memory:" + m.opts.NewID()
	for head := saved; ; { // which is the log's, right after a save
		_, err := eventlog.AppendOnce(ctx, m.opts.Log, log, writer, head, entries)
		if _, conflict := errors.AsType[*eventlog.ConflictError](err); conflict {
			head, err = m.headOver(ctx, log, saved)
			if err == nil {
				continue
			}
		}
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return readmodel.ErrNoMemory
		}
		return err
	}
}

// headOver returns a log's head, if it has the record saved. Sequences are
// never used again: one that is there is of the log as it was.
func (m *Manager) headOver(ctx context.Context, log string, saved uint64) (uint64, error) {
	head, err := m.opts.Log.Head(ctx, log)
	if err != nil {
		return 0, err
	}
	for r, err := range m.opts.Log.Read(ctx, log, saved-1, saved) {
		if err != nil {
			return 0, err
		}
		if r.Sequence == saved {
			return head, nil
		}
	}
	return 0, eventlog.ErrSessionNotFound
}
