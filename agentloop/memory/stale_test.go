package memory_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/eventlog"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

// lagging is an index that knows a log as it was.
type lagging struct{ *index }

func (l lagging) Memory(ctx context.Context, s eventlog.MemoryScope, id, model string) (readmodel.Answer[readmodel.Memory], error) {
	a, err := l.index.Memory(ctx, s, id, model)
	a.Fresh = readmodel.Fresh{Lag: 1}
	return a, err
}

func (l lagging) Candidates(ctx context.Context, q readmodel.MemoryQuery) (readmodel.Answer[readmodel.MemoryCandidates], error) {
	a, err := l.index.Candidates(ctx, q)
	a.Fresh = readmodel.Fresh{Lag: 1}
	return a, err
}

func (l lagging) ListMemories(ctx context.Context, s eventlog.MemoryScope, model string, p readmodel.Paging) (readmodel.Answer[readmodel.MemoryPage], error) {
	a, err := l.index.ListMemories(ctx, s, model, p)
	a.Fresh = readmodel.Fresh{Lag: 1}
	return a, err
}

func (l lagging) PendingMemories(ctx context.Context, model string, after readmodel.PendingCursor, limit int) (readmodel.Answer[readmodel.Pending], error) {
	a, err := l.index.PendingMemories(ctx, model, after, limit)
	a.Fresh = readmodel.Fresh{Lag: 1}
	return a, err
}

// lagsFrom is an index that hears no more of Ada's memories, the only ones of a
// log.
func lagsFrom(t *testing.T, log eventlog.Log) lagging {
	t.Helper()
	was, last := logmemory.New(), uint64(0)
	for r, err := range log.Read(t.Context(), ada.LogID(), 0, 0) {
		require.NoError(t, err)
		last, err = was.Append(t.Context(), ada.LogID(), last, []eventlog.Entry{r.Entry})
		require.NoError(t, err)
		require.Equal(t, r.Sequence, last)
	}
	return lagging{&index{log: was}}
}

// TestAnIndexThatIsBehind is not believed about what is not there any more.
func TestAnIndexThatIsBehind(t *testing.T) {
	draft := memory.Draft{Scope: ada, Key: "tea", Content: "Ada likes green tea."}
	info, p := agentloop.SessionInfo{UserID: "ada"}, memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3}
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, m *memory.Manager, id string)
		there     bool
		forgotten bool
	}{
		"nothing has happened": {there: true, meanwhile: func(*testing.T, *memory.Manager, string) {}},
		"another was saved":    {there: true, meanwhile: func(t *testing.T, m *memory.Manager, _ string) { save(t, m, "Ada has a dog.") }},
		"it was forgotten": {forgotten: true, meanwhile: func(t *testing.T, m *memory.Manager, id string) {
			require.NoError(t, m.Forget(t.Context(), ada, id))
			save(t, m, "Ada has a dog.")
		}},
		"all was erased": {meanwhile: func(t *testing.T, m *memory.Manager, _ string) {
			_, err := m.Erase(t.Context(), ada)
			require.NoError(t, err)
		}},
		"all was erased, and there is more": {meanwhile: func(t *testing.T, m *memory.Manager, _ string) {
			_, err := m.Erase(t.Context(), ada)
			require.NoError(t, err)
			save(t, m, "Ada has a dog.", "It barks.")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			log := logmemory.New()
			current := newManager(t, memory.Options{Log: log})
			first, err := current.Save(t.Context(), draft)
			require.NoError(t, err)
			behind := newManager(t, memory.Options{Log: log, Index: lagsFrom(t, log)})
			c.meanwhile(t, current, first.ID)
			want := []string{}
			if c.there {
				want = append(want, draft.Content)
			}
			require.Equal(t, want, recall(t, behind, info, p, "green tea?"))
			require.Equal(t, want, hits(search(t, behind, "green tea?")))
			listed, err := behind.List(t.Context(), ada, readmodel.Paging{})
			require.NoError(t, err)
			require.Equal(t, want, contentsOf(listed.Value.Items, func(m readmodel.Memory) string { return m.Content }))
			require.Equal(t, len(want), listed.Value.Total)
			require.False(t, listed.Value.HasMore)

			again, err := behind.Save(t.Context(), draft)
			if c.forgotten {
				require.ErrorIs(t, err, readmodel.ErrForgotten)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.there, again.Sequence == first.Sequence)
			require.Contains(t, hits(search(t, current, "green tea?")), draft.Content, "what was acknowledged is there")
		})
	}
}

// TestRecallWhileTheIndexIsMade: nothing found is not nothing there.
func TestRecallWhileTheIndexIsMade(t *testing.T) {
	log := logmemory.New()
	save(t, newManager(t, memory.Options{Log: log}), "Ada likes green tea.")
	m := newManager(t, memory.Options{Log: log, Index: &index{log: log, anew: true}})
	info, p := agentloop.SessionInfo{UserID: "ada"}, memory.Policy{Scope: eventlog.MemoryOfUser, Recall: 3}
	require.NotEmpty(t, recall(t, m, info, p, "green tea?"))
	_, err := m.Recall(t.Context(), agentloop.RecallRequest{SessionInfo: info, Query: "dogs"}, p)
	require.ErrorIs(t, err, readmodel.ErrUnavailable)

	p.Search = true
	tree := converse(t, log, m, p, "s", "ada", "Have I a dog?", call("c1", memory.SearchTool, `{"query":"dogs"}`))
	require.JSONEq(t, `{"memories":[],"note":"There may be more memories: not all can be found yet."}`, string(results(tree)["c1"].Result))
}
