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
	"github.com/helixd/helixd/projector/readmodel"
)

// clustered makes vectors as embeddings are: around topics, most of what they
// have in common being common to all, and near to far fewer dimensions than
// they have numbers.
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

// near makes a question about one of the vectors.
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

// What the rough step picks has at least 95 of 100 of the ten that fit best.
func TestTheRoughStepFindsTheBest(t *testing.T) {
	t.Parallel()
	memories, questions := 5_000, 20
	if raced || testing.Short() {
		memories, questions = 2_000, 10
	}
	for _, dimensions := range []int{64, 256, 1536} {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(1, uint64(dimensions)))
			vectors := clustered(rnd, memories, dimensions)
			var codes []code
			for _, v := range vectors {
				codes = append(codes, *codeOf(v))
			}
			found := 0
			for range questions {
				q := near(rnd, vectors[rnd.IntN(memories)])
				rough := questionOf(q).nearest(codes, roughLeast, nil)
				require.Len(t, rough, roughLeast)
				for _, n := range exact(vectors, q, 10) {
					if slices.Contains(rough, n) {
						found++
					}
				}
			}
			t.Logf("recall@10: %.3f", float64(found)/float64(10*questions))
			require.GreaterOrEqual(t, found, 95*10*questions/100)
		})
	}
}

// Vectors that are mostly zeros, as those of hashed words, are told apart too.
func TestCodesOfSparseVectors(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(2, 2))
	vectors := make([][]float32, 2000)
	var codes []code
	for i := range vectors {
		vectors[i] = make([]float32, 256)
		for range 8 {
			vectors[i][rnd.IntN(256)]++
		}
		codes = append(codes, *codeOf(vectors[i]))
	}
	found := 0
	for i := range 50 {
		q := slices.Clone(vectors[i])
		q[rnd.IntN(256)]++
		rough := questionOf(q).nearest(codes, 20, nil)
		for _, n := range exact(vectors, q, 3) {
			if slices.Contains(rough, n) {
				found++
			}
		}
	}
	require.GreaterOrEqual(t, found, 140)
}

func TestVectorsWithoutADirectionHaveNoCode(t *testing.T) {
	t.Parallel()
	zero := float32(0)
	for _, v := range [][]float32{nil, {}, {0, 0}, {1, 1 / zero}, {zero / zero}} {
		require.Nil(t, codeOf(v))
	}
	require.Equal(t, codeOf([]float32{1e30, -1e30}), codeOf([]float32{1e-30, -1e-30}), "the length does not matter")
	most := make([]float32, eventlog.MaxDimensions)
	most[0] = 1
	require.NotNil(t, codeOf(most))
}

// large is a world with a scope that is too large to compare all vectors.
func large(t *testing.T, n int) (*world, eventlog.MemoryScope, [][]float32) {
	w := newWorld(t)
	s := userScope("u")
	vectors := clustered(rand.New(rand.NewPCG(3, 3)), n, 32)
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

// Of a scope whose codes are in memory, what comes is found at once, and what
// was forgotten is not, nor does it take the place of others.
func TestALargeScopeChanges(t *testing.T) {
	t.Parallel()
	n := 2*roughCodes*roughLeast + 3*staleLeast
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
	for i, id := range order[:2*staleLeast] {
		w.append(s.LogID(), memoryForgotten(s, id))
		if i%16 == 0 {
			require.Equal(t, order[i+1], nearest(vectors[7], 1)[0])
		}
	}
	require.Len(t, nearest(vectors[7], readmodel.MaxPage), readmodel.MaxPage)
	_, err := w.log.Erase(t.Context(), s.LogID())
	require.NoError(t, err)
	require.Empty(t, nearest(vectors[7], 1))
	require.Empty(t, w.models.file.codes.sets, "nothing of it is in memory")
}

// The codes take no more memory than they may; of a scope that is larger, the
// newest memories are found.
func TestCodesAreBounded(t *testing.T) {
	t.Parallel()
	n := roughLeast + 200
	w, s, vectors := large(t, n)
	require.NotEmpty(t, w.candidates(readmodel.MemoryQuery{Scope: s, Text: "memory"}).ByWords) // all is in
	c := newCodeCache(codeBytes * (n - 100))
	near := func(v []float32) (found []int64) {
		_, err := look(t.Context(), w.models, func(tx *sql.Tx) (none struct{}, err error) {
			id, err := scopeNumber(t.Context(), tx, s)
			require.NoError(t, err)
			found, err = c.near(t.Context(), tx, id, embedderA, questionOf(v), 10, nil)
			return none, err
		})
		require.NoError(t, err)
		return found
	}
	require.Contains(t, near(vectors[n-1]), int64(n))
	require.NotContains(t, near(vectors[0]), int64(1))
	require.LessOrEqual(t, c.bytes, c.maxBytes)
	require.Equal(t, 1, c.order.Len())
	c.maxBytes /= 2
	c.get(codeKey{})
	near(vectors[0])
	require.Equal(t, 1, c.order.Len(), "the other one had to go")
}

// Questions that come together while memories come and go each get an answer.
func TestQuestionsComeTogether(t *testing.T) {
	t.Parallel()
	w, s, vectors := large(t, 2*roughCodes*roughLeast)
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
