package httpapi_test

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/memory/embedder/local"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// remembering is a manager of memories that are found in the log itself.
func remembering(log eventlog.Log) *memory.Manager {
	return memory.New(memory.Options{Log: log, Index: foldedMemories{log}, Embedder: local.New(0)})
}

// foldedMemories are an index that folds the log whenever it is asked.
type foldedMemories struct{ log eventlog.Log }

var current = readmodel.Fresh{Current: true}

// all returns a scope's memories, oldest first.
func (f foldedMemories) all(ctx context.Context, scope eventlog.MemoryScope, model string) (all []readmodel.Memory, err error) {
	for r, err := range f.log.Read(ctx, scope.LogID(), 0, 0) {
		if errors.Is(err, eventlog.ErrSessionNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		f, err := r.Fact()
		if err != nil {
			return nil, err
		}
		is := func(id string) func(readmodel.Memory) bool {
			return func(m readmodel.Memory) bool { return m.ID == id }
		}
		switch m := f.(type) {
		case *fact.MemorySaved:
			if !slices.ContainsFunc(all, is(m.MemoryID)) {
				all = append(all, readmodel.Memory{
					ID: m.MemoryID, Scope: scope, Content: m.Content, Tags: m.Tags, Metadata: m.Metadata, Source: m.Source,
					CreatedAt: m.Timestamp, Sequence: r.Sequence, EmbeddingStatus: readmodel.EmbeddingPending,
				})
			}
		case *fact.MemoryEmbedded:
			if i := slices.IndexFunc(all, is(m.MemoryID)); i >= 0 && m.Model == model {
				all[i].EmbeddingStatus = readmodel.EmbeddingComplete
			}
		case *fact.MemoryForgotten:
			all = slices.DeleteFunc(all, is(m.MemoryID))
		}
	}
	return all, nil
}

func (f foldedMemories) Candidates(ctx context.Context, q readmodel.MemoryQuery) (a readmodel.Answer[readmodel.MemoryCandidates], err error) {
	all, err := f.all(ctx, q.Scope, q.Model)
	for _, m := range all {
		if slices.ContainsFunc(strings.Fields(q.Text), func(word string) bool { return strings.Contains(m.Content, word) }) {
			a.Value.ByWords = append(a.Value.ByWords, readmodel.RankedMemory{Memory: m, Score: 1})
		}
	}
	a.Fresh = current
	return a, err
}

func (f foldedMemories) Memory(ctx context.Context, scope eventlog.MemoryScope, id, model string) (a readmodel.Answer[readmodel.Memory], err error) {
	all, err := f.all(ctx, scope, model)
	a.Fresh = current
	for _, m := range all {
		if m.ID == id {
			a.Value = m
			return a, nil
		}
	}
	for r := range f.log.Read(ctx, scope.LogID(), 0, 0) {
		if f, _ := r.Fact(); f != nil && f.Type() == "memory_forgotten" && f.(*fact.MemoryForgotten).MemoryID == id {
			return a, readmodel.ErrForgotten
		}
	}
	return a, errors.Join(err, readmodel.ErrNoMemory)
}

func (f foldedMemories) ListMemories(
	ctx context.Context, scope eventlog.MemoryScope, model string, page readmodel.Paging,
) (a readmodel.Answer[readmodel.MemoryPage], err error) {
	all, err := f.all(ctx, scope, model)
	slices.Reverse(all)
	found := rowsPage(all, page)
	a.Value.Page, a.Fresh = found.Value, found.Fresh
	return a, err
}

func (f foldedMemories) PendingMemories(
	ctx context.Context, model string, after readmodel.PendingCursor, limit int,
) (a readmodel.Answer[readmodel.Pending], err error) {
	a.Value.Heads = map[string]uint64{}
	for id, err := range f.log.Sessions(ctx) {
		if err != nil {
			return a, err
		}
		kind, of, ok := strings.Cut(strings.TrimPrefix(id, "~memory/"), "/")
		if !eventlog.IsMemoryLog(id) || !ok || id < after.Log {
			continue
		}
		all, err := f.all(ctx, eventlog.MemoryScope{Kind: eventlog.MemoryScopeKind(kind), ID: of}, model)
		if err != nil {
			return a, err
		}
		a.Value.Heads[id], _ = f.log.Head(ctx, id)
		for _, m := range all {
			if m.EmbeddingStatus == readmodel.EmbeddingPending && (id > after.Log || m.Sequence > after.Sequence) && len(a.Value.Items) < limit {
				a.Value.Items = append(a.Value.Items, m)
			}
		}
	}
	return a, nil
}
