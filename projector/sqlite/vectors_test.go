package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// clustered generates vectors like embeddings: they are around topics, most of their
// common direction is common to all, and they lie near a space of far fewer dimensions.
func clustered(rnd *rand.Rand, n, dimensions int) [][]float32 {
	const own, perTopic = 32, 1000 // dimensions; vectors
	normal := func(n int, spread float64) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(rnd.NormFloat64() * spread)
		}
		return v
	}
	centre, turn := normal(dimensions, 6), normal(dimensions*own, 1)
	topics := make([][]float32, n/perTopic+1)
	for i := range topics {
		topics[i] = normal(own, 1)
	}
	all := make([][]float32, n)
	for i := range all {
		point := normal(own, 0.7)
		for j, x := range topics[i%len(topics)] {
			point[j] += x
		}
		v := slices.Clone(centre)
		for j := range v {
			v[j] += float32(rnd.NormFloat64())
			for k, x := range turn[j*own:][:own] {
				v[j] += x * point[k]
			}
		}
		all[i] = v
	}
	return all
}

// near returns a query vector near one of the vectors.
func near(rnd *rand.Rand, v []float32) []float32 {
	q := slices.Clone(v)
	for i := range q {
		q[i] += float32(rnd.NormFloat64() * 2)
	}
	return q
}

// exact returns the numbers of the vectors with the greatest cosine.
func exact(vectors [][]float32, q []float32, most int) []int {
	type hit struct {
		n     int
		score float64
	}
	hits := make([]hit, len(vectors))
	for i, v := range vectors {
		hits[i] = hit{i, cosine(q, v)}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if a.score > b.score {
			return -1
		}
		return 1
	})
	found := make([]int, most)
	for i := range found {
		found[i] = hits[i].n
	}
	return found
}

// The memories that fit best are found, all of them and in order.
func TestTheBestAreFound(t *testing.T) {
	t.Parallel()
	memories, questions := 2_000, 20
	if !testkit.InFull() {
		memories, questions = 500, 10
	}
	for _, dimensions := range []int{3, 64, 256, 1536} {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(1, uint64(dimensions)))
			w, s, vectors := withVectors(t, clustered(rnd, memories, dimensions))
			for range questions {
				q := near(rnd, vectors[rnd.IntN(memories)])
				var want []string
				for _, n := range exact(vectors, q, 10) {
					want = append(want, fmt.Sprint("m", n))
				}
				require.Equal(t, want, idsOf(w.candidates(readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: q}).ByMeaning))
			}
		})
	}
}

// Sparse vectors, such as those of hashed words, are distinguished too.
func TestSparseVectors(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	rnd := rand.New(rand.NewPCG(2, 2))
	vectors := make([][]float32, 500)
	for i := range vectors {
		vectors[i] = make([]float32, 256)
		for range 8 {
			vectors[i][rnd.IntN(256)]++
		}
	}
	w, s, _ := withVectors(t, vectors)
	for i := range 50 {
		q := slices.Clone(vectors[i])
		q[rnd.IntN(256)]++
		found := w.candidates(readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: q}).ByMeaning
		for place, n := range exact(vectors, q, 10) { // some are equally near
			require.InDelta(t, cosine(q, vectors[n]), found[place].Score, 1e-6)
		}
	}
}

func TestVectorsWithoutADirection(t *testing.T) {
	t.Parallel()
	zero := float32(0)
	for _, v := range [][]float32{nil, {}, {0, 0}, {1, 1 / zero}, {zero / zero}} {
		require.Nil(t, unitOf(v))
	}
	require.Equal(t, unitOf([]float32{1e30, -1e30}), unitOf([]float32{1e-30, -1e-30}), "the length does not matter")
	most := make([]float32, fact.MaxDimensions)
	most[0] = 1
	require.NotNil(t, unitOf(most))
}

// large is a world with a scope whose vectors are kept.
func large(t *testing.T, n int) (*world, eventlog.MemoryScope, [][]float32) {
	return withVectors(t, clustered(rand.New(rand.NewPCG(3, 3)), n, 32))
}

// withVectors is a world with a scope that has the vectors.
func withVectors(t *testing.T, vectors [][]float32) (*world, eventlog.MemoryScope, [][]float32) {
	w := newWorld(t)
	s := userScope("u")
	var entries []eventlog.Entry
	for i, v := range vectors {
		id := fmt.Sprint("m", i)
		entries = append(entries, memorySaved(s, id, fmt.Sprint("memory number ", i)), memoryEmbedded(s, id, embedderA, v...))
	}
	for batch := range slices.Chunk(entries, 500) {
		w.append(s.LogID(), batch...)
	}
	w.open()
	return w, s, vectors
}

// If a scope's vectors are in memory, new memories are found at once; forgotten ones are
// not found and take no place in the ranking.
func TestALargeScopeChanges(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	const n, gone = 1_800, 128
	w, s, vectors := large(t, n)
	nearest := func(q []float32, limit int) []string {
		return idsOf(w.candidates(readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: q, Limit: limit}).ByMeaning)
	}
	require.Equal(t, []string{"m7"}, nearest(vectors[7], 1))
	w.append(s.LogID(), memorySaved(s, "new", "x"), memoryEmbedded(s, "new", embedderA, vectors[7]...))
	require.Equal(t, []string{"new", "m7"}, nearest(vectors[7], 2))
	w.append(s.LogID(), memoryEmbedded(s, "new", embedderA, vectors[8]...))
	require.Equal(t, []string{"m7"}, nearest(vectors[7], 1))
	require.Equal(t, []string{"new", "m8"}, nearest(vectors[8], 2))
	order := nearest(vectors[7], readmodel.MaxPage)
	for i, id := range order[:gone] {
		w.append(s.LogID(), memoryForgotten(s, id))
		if i%16 == 0 {
			require.Equal(t, order[i+1], nearest(vectors[7], 1)[0])
		}
	}
	require.Len(t, nearest(vectors[7], readmodel.MaxPage), readmodel.MaxPage)
	of := space{scope: 1, model: embedderA, dimensions: 32}
	require.True(t, w.models.file.vectors.sets.Holds(of))
	_, err := w.log.Erase(t.Context(), s.LogID())
	require.NoError(t, err)
	require.Empty(t, nearest(vectors[7], 1))
	require.False(t, w.models.file.vectors.sets.Holds(of), "nothing of it is in memory")
}

// The vectors take no more memory than their bound; vectors that are not kept are found
// too.
func TestKeptVectorsAreBounded(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	n := fewVectors + 200
	w, s, vectors := large(t, n)
	require.NotEmpty(t, w.candidates(readmodel.MemoryQuery{Scope: s, Text: "memory"}).ByWords) // all is in
	of := space{model: embedderA, dimensions: 32}
	c := newVectorCache(of.bytes() * (n - 100))
	all := func() (found []int64) {
		_, err := look(t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (none struct{}, err error) {
			of.scope, err = scopeNumber(t.Context(), tx, s)
			require.NoError(t, err)
			return none, c.each(t.Context(), tx, of, func(e embedding) {
				require.InDelta(t, 1, cosine(vectors[e.id-1], e.unit), 1e-6)
				found = append(found, e.id)
			})
		})
		require.NoError(t, err)
		slices.Sort(found)
		require.Len(t, slices.Compact(found), n)
		return found
	}
	for range 2 {
		require.Len(t, all(), n)
		require.NoError(t, c.sets.Use(t.Context(), of, func(s *vectorSet) (int, error) {
			require.Len(t, s.all, n-100)
			return len(s.all) * of.bytes(), nil
		}))
	}
	keep := func(of space) error {
		return c.sets.Use(t.Context(), of, func(*vectorSet) (int, error) { return of.bytes(), nil })
	}
	other := space{scope: 1_000, dimensions: 32}
	require.NoError(t, keep(other))
	require.False(t, c.sets.Holds(of), "the first had to go")
	c.forget(other.scope)
	require.False(t, c.sets.Holds(other))
}

// The vectors of a small scope are not kept.
func TestFewVectorsAreNotKept(t *testing.T) {
	t.Parallel()
	w, s, vectors := large(t, fewVectors-1)
	require.Len(t, w.candidates(readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: vectors[0]}).ByMeaning, 10)
	require.False(t, w.models.file.vectors.sets.Holds(space{scope: 1, model: embedderA, dimensions: 32}))
}

// A query sees the vectors of its transaction, even if a later transaction has read more.
func TestVectorsOfAnEarlierTransaction(t *testing.T) {
	t.Parallel()
	w, s, vectors := large(t, fewVectors)
	require.NotEmpty(t, w.candidates(readmodel.MemoryQuery{Scope: s, Text: "memory"}).ByWords) // all is in
	count := func(tx *sql.Tx) (n int) {
		id, err := scopeNumber(t.Context(), tx, s)
		require.NoError(t, err)
		err = w.models.file.vectors.each(t.Context(), tx, space{id, embedderA, 32}, func(embedding) { n++ })
		require.NoError(t, err)
		return n
	}
	_, err := look(t.Context(), w.models, func(_ context.Context, tx *sql.Tx) (none struct{}, err error) {
		require.Equal(t, fewVectors, count(tx))
		for _, change := range []eventlog.Entry{memorySaved(s, "new", "x"), memoryForgotten(s, "m0")} {
			w.append(s.LogID(), change, memoryEmbedded(s, "new", embedderA, vectors[0]...))
			later := w.candidates(readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: vectors[0], Limit: 1}).ByMeaning
			require.Equal(t, []string{"new"}, idsOf(later))
			require.Equal(t, fewVectors, count(tx))
		}
		return none, nil
	})
	require.NoError(t, err)
}

// Concurrent queries all get an answer while memories are added and removed.
func TestQuestionsComeTogether(t *testing.T) {
	t.Parallel()
	w, s, vectors := large(t, 1_600)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 4)
	for i := range 4 {
		go func() {
			for ctx.Err() == nil {
				q := readmodel.MemoryQuery{Scope: s, Text: "memory", Model: embedderA, Vector: vectors[100+i], Limit: 1}
				a, err := w.models.Candidates(t.Context(), q)
				if err == nil && (len(a.Value.ByMeaning) != 1 || a.Value.ByMeaning[0].ID != fmt.Sprint("m", 100+i)) {
					err = fmt.Errorf("question %d: %v", i, idsOf(a.Value.ByMeaning))
				}
				if err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for i := range 50 {
		w.append(s.LogID(), memoryForgotten(s, fmt.Sprint("m", i)))
		w.append(s.LogID(), memorySaved(s, fmt.Sprint("n", i), "x"), memoryEmbedded(s, fmt.Sprint("n", i), embedderA, vectors[i]...))
	}
	cancel()
	for range 4 {
		require.NoError(t, <-done)
	}
}
