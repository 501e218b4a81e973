package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// lookUp returns a memory as the index has it or, if that lags or can't be
// asked, as the log has it. Errors: readmodel.ErrNoMemory; those of the log.
func (m *Manager) lookUp(ctx context.Context, scope eventlog.MemoryScope, id string) (readmodel.Memory, error) {
	answer, err := m.opts.Index.Memory(ctx, scope, id, m.model())
	switch {
	case answer.Fresh.Current && (err == nil || errors.Is(err, readmodel.ErrNoMemory)):
		return answer.Value, err
	case ctx.Err() != nil:
		return readmodel.Memory{}, context.Cause(ctx)
	}
	memory, _, err := m.fromLog(ctx, scope, id, 0)
	return memory, err
}

// withoutGone leaves of what an index has found that lags what the log still
// has: the answer must not contain memories that were forgotten or erased since. Errors: the
// log's.
func (m *Manager) withoutGone(ctx context.Context, log string, c readmodel.MemoryCandidates) (readmodel.MemoryCandidates, error) {
	if len(c.ByWords)+len(c.ByMeaning) == 0 {
		return c, nil
	}
	forgotten, err := m.forgottenSince(ctx, log, c.Head)
	if errors.Is(err, readmodel.ErrNoMemory) {
		return readmodel.MemoryCandidates{}, nil
	}
	gone := func(r readmodel.RankedMemory) bool { return forgotten[r.ID] }
	c.ByWords, c.ByMeaning = slices.DeleteFunc(c.ByWords, gone), slices.DeleteFunc(c.ByMeaning, gone)
	return c, err
}

func without(forgotten map[string]bool, memories []readmodel.Memory) []readmodel.Memory {
	return slices.DeleteFunc(slices.Clone(memories), func(m readmodel.Memory) bool { return forgotten[m.ID] })
}

// forgottenSince returns the ids of memories that were forgotten after one of a
// log's records. Errors: readmodel.ErrNoMemory if the log was erased since, and
// perhaps restarted; the log's.
func (m *Manager) forgottenSince(ctx context.Context, log string, known uint64) (map[string]bool, error) {
	forgotten, same := map[string]bool{}, false
	for r, err := range m.opts.Log.Read(ctx, log, known-1, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		if same = same || r.Sequence == known; !same {
			break
		}
		if r.Type != (*fact.MemoryForgotten)(nil).Type() { // a vector is long
			continue
		}
		if f, err := r.Fact(); err == nil {
			forgotten[f.(*fact.MemoryForgotten).MemoryID] = true
		}
	}
	if !same {
		return nil, readmodel.ErrNoMemory
	}
	return forgotten, nil
}

// vectorType is of what takes most of the room in a log.
var vectorType = (*fact.MemoryEmbedded)(nil).Type()

// fromLog returns what the records of a scope after one of them say of a memory,
// and the log's head, 0 if there is no log. Errors: readmodel.ErrNoMemory and
// ErrForgotten, also with the head; those of the log.
func (m *Manager) fromLog(ctx context.Context, scope eventlog.MemoryScope, id string, behind uint64) (memory readmodel.Memory, head uint64, err error) {
	head, forgotten := behind, false
	for r, err := range m.opts.Log.Read(ctx, scope.LogID(), behind, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			return readmodel.Memory{}, 0, readmodel.ErrNoMemory
		}
		if err != nil {
			return readmodel.Memory{}, 0, err
		}
		head = r.Sequence
		if r.Type == vectorType && memory.ID == "" {
			continue // another one's
		}
		f, err := r.Fact()
		if err != nil {
			continue // as the index does
		}
		switch f := f.(type) {
		case *fact.MemorySaved:
			if f.MemoryID == id && memory.ID == "" {
				memory = memoryOf(scope, f, r.Sequence)
			}
		case *fact.MemoryEmbedded:
			if f.MemoryID == id && f.Model == m.model() {
				memory.EmbeddingStatus = readmodel.EmbeddingComplete
			}
		case *fact.MemoryForgotten:
			forgotten = forgotten || f.MemoryID == id
		}
	}
	switch {
	case forgotten:
		return readmodel.Memory{}, head, readmodel.ErrForgotten
	case memory.ID == "":
		return readmodel.Memory{}, head, readmodel.ErrNoMemory
	}
	return memory, head, nil
}

// update appends facts about memories of a log, in which saved is the sequence
// of one of them. A log that was erased since, and perhaps restarted, is left
// alone. Errors: readmodel.ErrNoMemory for such a log; the log's.
func (m *Manager) update(ctx context.Context, log string, saved uint64, facts ...fact.Fact) error {
	entries := make([]eventlog.Entry, len(facts))
	for i, f := range facts {
		var err error
		if entries[i], err = eventlog.NewFact(log, f, eventlog.Labels{}); err != nil {
			return err
		}
	}
	done, err := m.locks.Lock(ctx, log)
	if err != nil {
		return err
	}
	defer done()
	_, err = eventlog.Update(ctx, m.opts.Log, log, eventlog.UpdateOptions{
		Head:    saved, // which is the log's, right after a save
		CatchUp: func(ctx context.Context) (uint64, error) { return m.headOver(ctx, log, saved) },
		Writer:  m.writer,
	}, func(uint64) ([]eventlog.Entry, error) { return entries, nil })
	if errors.Is(err, eventlog.ErrSessionNotFound) {
		return readmodel.ErrNoMemory
	}
	return err
}

// writer returns a new id of an append.
func (m *Manager) writer() string { return "memory:" + m.opts.NewID() }

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
