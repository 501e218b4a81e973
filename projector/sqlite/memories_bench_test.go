package sqlite

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

const benchMemories = 100_000

// sentences makes texts as people write them: some words are in most of them,
// most words in few.
func sentences(rnd *rand.Rand) func() string {
	zipf := rand.NewZipf(rnd, 1.1, 3, 50_000)
	return func() string {
		words := make([]string, 8+rnd.IntN(20))
		for i := range words {
			words[i] = fmt.Sprint("word", zipf.Uint64())
		}
		return strings.Join(words, " ")
	}
}

// remembering is a node whose log has one scope with many memories.
func remembering(b *testing.B, dimensions int) (*world, eventlog.MemoryScope, [][]float32) {
	w := newWorld(b)
	w.opts.Logger = nil
	s := userScope("u")
	rnd := rand.New(rand.NewPCG(4, 4))
	sentence, vectors := sentences(rnd), clustered(rnd, benchMemories, dimensions)
	const batch = 250
	for i := 0; i < benchMemories; i += batch {
		var entries []eventlog.Entry
		for n := i; n < i+batch; n++ {
			id := fmt.Sprint("m", n)
			entries = append(entries, memorySaved(s, id, sentence()), memoryEmbedded(s, id, embedderA, vectors[n]...))
		}
		w.append(s.LogID(), entries...)
	}
	began := time.Now()
	w.open()
	require.Eventually(b, func() bool { return w.models.await(b.Context()).Current }, 10*time.Minute, time.Millisecond)
	b.Logf("%d memories of %d dimensions: made in %v", benchMemories, dimensions, time.Since(began))
	return w, s, vectors
}

// BenchmarkRecall is a question, by words and by meaning together, among
// 100,000 memories of one scope.
func BenchmarkRecall(b *testing.B) {
	for _, dimensions := range []int{256, 1536} {
		b.Run(fmt.Sprintf("dimensions=%d", dimensions), func(b *testing.B) {
			w, s, vectors := remembering(b, dimensions)
			rnd := rand.New(rand.NewPCG(5, 5))
			sentence := sentences(rnd)
			ask := func(words, meaning bool) func(b *testing.B) {
				return func(b *testing.B) {
					var took []time.Duration
					for b.Loop() {
						q := readmodel.MemoryQuery{Scope: s, Limit: 20}
						if words {
							q.Text = sentence()
						}
						if meaning {
							q.Model, q.Vector = embedderA, near(rnd, vectors[rnd.IntN(len(vectors))])
						}
						began := time.Now()
						a, err := w.models.Candidates(b.Context(), q)
						took = append(took, time.Since(began))
						require.NoError(b, err)
						require.True(b, a.Fresh.Current)
					}
					slices.Sort(took)
					at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1000 }
					b.ReportMetric(at(0.5), "p50-ms")
					b.ReportMetric(at(0.99), "p99-ms")
				}
			}
			began := time.Now()
			_, err := w.models.Candidates(b.Context(), readmodel.MemoryQuery{Scope: s, Model: embedderA, Vector: vectors[0], Limit: 1})
			require.NoError(b, err)
			b.Logf("the first question took %v", time.Since(began))
			b.Run("both", ask(true, true))
			b.Run("words", ask(true, false))
			b.Run("meaning", ask(false, true))
		})
	}
}
