package memory_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/memory/embedder/local"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/projector/readmodel/words"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.InMemory(m)) }

var ada = eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "ada"}

// newManager is a manager on a log in memory, with the local embedder and an
// exact index, as far as o says nothing else.
func newManager(t *testing.T, o memory.Options) *memory.Manager {
	t.Helper()
	if o.Log == nil {
		o.Log = logmemory.New()
	}
	if o.Index == nil {
		o.Index = &index{log: o.Log}
	}
	if o.Embedder == nil {
		o.Embedder = local.New(0)
	}
	return memory.New(o)
}

func save(t *testing.T, m *memory.Manager, contents ...string) (ids []string) {
	t.Helper()
	for _, content := range contents {
		saved, err := m.Save(t.Context(), memory.Draft{Scope: ada, Content: content})
		require.NoError(t, err)
		ids = append(ids, saved.ID)
	}
	return ids
}

func search(t *testing.T, m *memory.Manager, text string) memory.Found {
	t.Helper()
	found, err := m.Search(t.Context(), memory.Query{Scope: ada, Text: text})
	require.NoError(t, err)
	return found
}

func contentsOf[T any](items []T, content func(T) string) []string {
	contents := []string{}
	for _, item := range items {
		contents = append(contents, content(item))
	}
	return contents
}

func hits(found memory.Found) []string {
	return contentsOf(found.Hits, func(h memory.Hit) string { return h.Content })
}

// typesOf returns the types of a scope's records.
func typesOf(t *testing.T, log eventlog.Log, scope eventlog.MemoryScope) (types []string) {
	t.Helper()
	for r, err := range log.Read(t.Context(), scope.LogID(), 0, 0) {
		require.NoError(t, err)
		types = append(types, r.Type)
	}
	return types
}

// index answers from the log itself, exactly: it folds it for each question.
type index struct {
	log eventlog.Log

	mu       sync.Mutex
	behind   bool  // it knows nothing yet
	anew     bool  // it is being rebuilt
	down     error // it does not answer
	question readmodel.MemoryQuery
}

type vectors map[string][]float32 // by model

type row struct {
	readmodel.Memory
	vectors   vectors
	forgotten bool
}

// rows are the memories of a log in the order in which they were saved.
func (x *index) rows(ctx context.Context, log string) ([]row, readmodel.Fresh, error) {
	rows, fresh, err := x.all(ctx, log)
	return slices.DeleteFunc(rows, func(r row) bool { return r.forgotten }), fresh, err
}

// all are rows, with those that were forgotten.
func (x *index) all(ctx context.Context, log string) (rows []row, fresh readmodel.Fresh, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.down != nil || x.behind {
		return nil, readmodel.Fresh{Lag: 1}, x.down
	}
	scope, _ := eventlog.MemoryScopeOf(log)
	for r, err := range x.log.Read(ctx, log, 0, 0) {
		if err != nil {
			break
		}
		f, err := r.Fact()
		if err != nil {
			continue
		}
		at := func(id string) int {
			return slices.IndexFunc(rows, func(r row) bool { return r.ID == id })
		}
		switch f := f.(type) {
		case *fact.MemorySaved:
			if at(f.MemoryID) < 0 {
				rows = append(rows, row{vectors: vectors{}, Memory: readmodel.Memory{
					ID: f.MemoryID, Scope: scope, Content: f.Content, Tags: f.Tags, Metadata: f.Metadata, Source: f.Source,
					CreatedAt: f.Timestamp, Sequence: r.Sequence,
				}})
			}
		case *fact.MemoryEmbedded:
			if i := at(f.MemoryID); i >= 0 {
				rows[i].vectors[f.Model] = f.Vector
			}
		case *fact.MemoryForgotten:
			if i := at(f.MemoryID); i >= 0 {
				rows[i].forgotten = true
			}
		}
	}
	return rows, readmodel.Fresh{Current: !x.anew, Rebuilding: x.anew}, nil
}

func (r row) as(model string) readmodel.Memory {
	r.EmbeddingStatus = readmodel.EmbeddingPending
	if r.vectors[model] != nil {
		r.EmbeddingStatus = readmodel.EmbeddingComplete
	}
	return r.Memory
}

func (x *index) Candidates(ctx context.Context, q readmodel.MemoryQuery) (a readmodel.Answer[readmodel.MemoryCandidates], err error) {
	x.mu.Lock()
	x.question = q
	x.mu.Unlock()
	rows, fresh, err := x.rows(ctx, q.Scope.LogID())
	a.Fresh = fresh
	a.Value.Head, _ = x.log.Head(ctx, q.Scope.LogID())
	asked := words.Of(q.Text)
	for _, r := range rows {
		if slices.Contains(q.Exclude, r.ID) {
			continue
		}
		shared := 0.0
		for _, w := range words.Of(r.Content + " " + strings.Join(r.Tags, " ")) {
			if slices.Contains(asked, w) {
				shared++
			}
		}
		if shared > 0 {
			a.Value.ByWords = append(a.Value.ByWords, readmodel.RankedMemory{Memory: r.as(q.Model), Score: shared})
		}
		if v := r.vectors[q.Model]; v != nil && q.Vector != nil {
			var dot float64
			for i := range v {
				dot += float64(v[i]) * float64(q.Vector[i])
			}
			a.Value.ByMeaning = append(a.Value.ByMeaning, readmodel.RankedMemory{Memory: r.as(q.Model), Score: dot})
		}
	}
	best := func(all []readmodel.RankedMemory) []readmodel.RankedMemory {
		slices.SortStableFunc(all, func(a, b readmodel.RankedMemory) int { return cmp.Compare(b.Score, a.Score) })
		return all[:min(q.Limit, len(all))]
	}
	a.Value.ByWords, a.Value.ByMeaning = best(a.Value.ByWords), best(a.Value.ByMeaning)
	return a, err
}

func (x *index) Memory(ctx context.Context, scope eventlog.MemoryScope, id, model string) (a readmodel.Answer[readmodel.Memory], err error) {
	rows, fresh, err := x.all(ctx, scope.LogID())
	a.Fresh = fresh
	if err != nil {
		return a, err
	}
	for _, r := range rows {
		switch {
		case r.ID != id:
		case r.forgotten:
			return a, readmodel.ErrForgotten
		default:
			a.Value = r.as(model)
			return a, nil
		}
	}
	return a, readmodel.ErrNoMemory
}

func (x *index) ListMemories(ctx context.Context, scope eventlog.MemoryScope, model string, page readmodel.Paging) (a readmodel.Answer[readmodel.MemoryPage], err error) {
	if page, err = page.Check(); err != nil {
		return a, err
	}
	rows, fresh, err := x.rows(ctx, scope.LogID())
	a.Fresh = fresh
	a.Value.Head, _ = x.log.Head(ctx, scope.LogID())
	a.Value.Page = readmodel.Page[readmodel.Memory]{Items: []readmodel.Memory{}, Total: len(rows), Offset: page.Offset, Limit: page.Limit}
	slices.Reverse(rows)
	for _, r := range rows[min(page.Offset, len(rows)):min(page.Offset+page.Limit, len(rows))] {
		a.Value.Items = append(a.Value.Items, r.as(model))
	}
	a.Value.HasMore = page.Offset+len(a.Value.Items) < len(rows)
	return a, err
}

func (x *index) PendingMemories(ctx context.Context, model string, after readmodel.PendingCursor, limit int) (a readmodel.Answer[readmodel.Pending], err error) {
	a.Value.Heads = map[string]uint64{}
	for log, err := range x.log.Sessions(ctx) {
		if err != nil {
			return a, err
		}
		if !eventlog.IsMemoryLog(log) || log < after.Log {
			continue
		}
		rows, fresh, err := x.rows(ctx, log)
		a.Fresh = fresh
		if err != nil {
			return a, err
		}
		a.Value.Heads[log], _ = x.log.Head(ctx, log)
		for _, r := range rows {
			if r.vectors[model] == nil && (log > after.Log || r.Sequence > after.Sequence) && len(a.Value.Items) < limit {
				a.Value.Items = append(a.Value.Items, r.as(model))
			}
		}
	}
	return a, nil
}

// embedder is the local one, as far as fail allows.
type embedder struct {
	*local.Embedder
	mu     sync.Mutex
	calls  [][]string
	before func(ctx context.Context, texts []string) error // nil: nothing
}

func newEmbedder(before func(ctx context.Context, texts []string) error) *embedder {
	return &embedder{Embedder: local.New(0), before: before}
}

func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e.mu.Lock()
	e.calls = append(e.calls, texts)
	e.mu.Unlock()
	if e.before != nil {
		if err := e.before(ctx, texts); err != nil {
			return nil, err
		}
	}
	return e.Embedder.Embed(ctx, texts)
}

func (e *embedder) asked() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

func object(s string) json.RawMessage { return json.RawMessage(s) }
