package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// told is a memory according to the log; nil: it was forgotten.
type told struct {
	content string
	vectors map[string][]float32
}

// Whatever happens to memories, and however often the models are stopped or built again,
// the index agrees with the log: it has the first memory that was saved under an id, the
// last vector of each model, and no memory that was ever forgotten.
func TestMemoriesAgreeWithTheLog(t *testing.T) {
	t.Parallel()
	rnd := testkit.Random(t)
	steps := 400
	if !testkit.InFull() {
		steps = 100
	}
	w := newWorld(t)
	w.open()
	scopes := []eventlog.MemoryScope{userScope("u"), {Kind: eventlog.MemoryOfAgent, ID: "a"}, {Kind: eventlog.MemoryOfSession, ID: "s"}}
	all := map[eventlog.MemoryScope]map[string]*told{}
	for range steps {
		s := scopes[rnd.IntN(len(scopes))]
		id, log := fmt.Sprint("m", rnd.IntN(16)), s.LogID()
		memories := all[s]
		switch rnd.IntN(9) {
		case 0, 1, 2:
			content := fmt.Sprintf("word%d word%d shared", rnd.IntN(5), rnd.IntN(5))
			w.append(log, memorySaved(s, id, content))
			if memories == nil {
				memories = map[string]*told{}
				all[s] = memories
			}
			if _, used := memories[id]; !used {
				memories[id] = &told{content: content, vectors: map[string][]float32{}}
			}
		case 3, 4, 5:
			if memories == nil {
				continue
			}
			model, vector := []string{embedderA, embedderB}[rnd.IntN(2)], []float32{rnd.Float32(), rnd.Float32(), rnd.Float32() - 0.5}
			w.append(log, memoryEmbedded(s, id, model, vector...))
			if memories[id] != nil {
				memories[id].vectors[model] = vector
			}
		case 6:
			if memories == nil {
				continue
			}
			w.append(log, memoryForgotten(s, id))
			memories[id] = nil
		case 7:
			switch rnd.IntN(10) {
			case 0:
				if memories != nil {
					_, err := w.log.Erase(t.Context(), log)
					require.NoError(t, err)
					delete(all, s)
				}
			case 1:
				w.open()
			case 2:
				w.close()
				require.NoError(t, removeFile(w.opts.Path))
				w.open()
			}
		case 8:
			requireTold(w, s, memories)
		}
	}
	for _, s := range scopes {
		requireTold(w, s, all[s])
	}
	requireSound(w)
}

func requireTold(w *world, s eventlog.MemoryScope, memories map[string]*told) {
	w.t.Helper()
	memories = maps.Clone(memories)
	maps.DeleteFunc(memories, func(id string, m *told) bool {
		if m == nil {
			_, err := w.models.Memory(w.t.Context(), s, id, embedderA)
			require.ErrorIs(w.t, err, readmodel.ErrForgotten)
		}
		return m == nil
	})
	got := map[string]string{}
	for _, m := range w.memories(s) {
		got[m.ID] = m.Content
		require.Equal(w.t, memories[m.ID].vectors[embedderA] != nil, m.EmbeddingStatus == readmodel.EmbeddingComplete)
	}
	want := map[string]string{}
	for id, m := range memories {
		want[id] = m.content
	}
	require.Equal(w.t, want, got)
	question := []float32{1, 0, 0}
	for _, model := range []string{embedderA, embedderB} {
		found := w.candidates(readmodel.MemoryQuery{Scope: s, Text: "shared word1", Model: model, Vector: question, Limit: readmodel.MaxPage})
		require.Len(w.t, found.ByWords, len(memories))
		scores := map[string]float64{}
		for _, r := range found.ByMeaning {
			scores[r.ID] = r.Score
		}
		n := 0
		for id, m := range memories {
			if v := m.vectors[model]; v != nil {
				n++
				require.InDelta(w.t, cosine(question, v), scores[id], 1e-5)
			}
		}
		require.Len(w.t, scores, n)
	}
}

func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

// requireSound checks that the file's counts match its rows, and waits until nothing is
// left of erased scopes.
func requireSound(w *world) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.count("SELECT count(*) FROM erased") == 0 }, time.Minute, 10*time.Millisecond)
	_, err := look(w.t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (none struct{}, err error) {
		for _, text := range []string{
			"SELECT count(*) FROM scopes s WHERE memories <> (SELECT count(*) FROM memories WHERE scope = s.id)",
			`SELECT count(*) FROM models x WHERE vectors <>
				(SELECT count(*) FROM vectors v JOIN memories m ON m.id = v.memory WHERE m.scope = x.scope AND v.model = x.model)`,
			"SELECT count(*) FROM vectors v WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = v.memory)",
			"SELECT count(*) FROM vectors v JOIN memories m ON m.id = v.memory WHERE m.scope <> v.scope",
			"SELECT count(*) FROM memories m WHERE NOT EXISTS (SELECT 1 FROM scopes s WHERE s.id = m.scope)",
			"SELECT count(*) FROM forgotten f WHERE NOT EXISTS (SELECT 1 FROM scopes s WHERE s.id = f.scope)",
			`SELECT count(*) FROM (SELECT scope FROM models UNION SELECT scope FROM terms) x
				WHERE NOT EXISTS (SELECT 1 FROM scopes s WHERE s.id = x.scope)`,
			"SELECT abs(count(*) - (SELECT count(*) FROM memories)) FROM memory_terms",
			"SELECT count(*) FROM terms t WHERE memories <> (SELECT count(*) FROM memory_terms WHERE memory_terms MATCH t.scope || 'x' || t.term)",
		} {
			var wrong int
			if err := tx.QueryRow(text).Scan(&wrong); err != nil {
				return none, fmt.Errorf("%s: %w", text, err)
			}
			if wrong != 0 {
				return none, fmt.Errorf("%s: %d", text, wrong)
			}
		}
		return none, nil
	})
	require.NoError(w.t, err)
	w.close()
	f, err := openFile(w.opts.Path)
	require.NoError(w.t, err)
	defer f.close()
	_, err = f.conn.ExecContext(w.t.Context(), "INSERT INTO memory_terms(memory_terms) VALUES ('integrity-check')")
	require.NoError(w.t, err)
}
