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
	w.current()
	b.Logf("%d memories of %d dimensions: made in %v", benchMemories, dimensions, time.Since(began))
	return w, s, vectors
}

// current waits until everything is in.
func (w *world) current() {
	w.t.Helper()
	for !w.models.await(w.t.Context()).Current {
		require.NoError(w.t, w.t.Context().Err())
	}
}

// BenchmarkRecall is a question, by words and by meaning together, among
// 100,000 memories of one scope: 99 of 100 are to take less than 20 ms once a
// hundred were asked. Cold is the first one behind a restart, of a file that the
// system has in memory.
func BenchmarkRecall(b *testing.B) {
	for _, dimensions := range []int{256, 1536} {
		b.Run(fmt.Sprintf("dimensions=%d", dimensions), func(b *testing.B) {
			w, s, vectors := remembering(b, dimensions)
			rnd := rand.New(rand.NewPCG(5, 5))
			sentence := sentences(rnd)
			both := func() readmodel.MemoryQuery {
				return readmodel.MemoryQuery{
					Scope: s, Limit: 50, Text: sentence(), Model: embedderA, Vector: near(rnd, vectors[rnd.IntN(len(vectors))]),
				}
			}
			for range 100 { // the first ones behind a rebuild, and behind a start, are slower
				_, err := w.models.Candidates(b.Context(), both())
				require.NoError(b, err)
			}
			for _, c := range []struct {
				name   string
				before func()
				change func(*readmodel.MemoryQuery)
			}{
				{name: "both"},
				{name: "words", change: func(q *readmodel.MemoryQuery) { q.Vector = nil }},
				{name: "meaning", change: func(q *readmodel.MemoryQuery) { q.Text = "" }},
				{name: "known=500", change: func(q *readmodel.MemoryQuery) {
					for range 500 {
						q.Exclude = append(q.Exclude, fmt.Sprint("m", rnd.IntN(benchMemories)))
					}
				}},
				{name: "cold", before: func() {
					w.open()
					w.current()
				}},
			} {
				b.Run(c.name, func(b *testing.B) {
					var took []time.Duration
					for b.Loop() {
						b.StopTimer()
						if c.before != nil {
							c.before()
						}
						q := both()
						if c.change != nil {
							c.change(&q)
						}
						b.StartTimer()
						began := time.Now()
						a, err := w.models.Candidates(b.Context(), q)
						took = append(took, time.Since(began))
						require.NoError(b, err)
						require.True(b, a.Fresh.Current)
						require.True(b, q.Vector == nil || len(a.Value.ByMeaning) == q.Limit)
					}
					reportTimes(b, took)
				})
			}
			// What meaning is compared with: the library's cosine of each vector.
			b.Run("all=meaning", func(b *testing.B) {
				const text = "SELECT memory FROM vectors ORDER BY vec_distance_cosine(vector, ?) LIMIT 50"
				var took []time.Duration
				for b.Loop() {
					vector := eventlog.Vector(near(rnd, vectors[rnd.IntN(len(vectors))])).Bytes()
					began := time.Now()
					rows, err := w.models.file.read.QueryContext(b.Context(), text, vector)
					require.NoError(b, err)
					found := 0
					for rows.Next() {
						found++
					}
					took = append(took, time.Since(began))
					require.NoError(b, rows.Close())
					require.Equal(b, 50, found)
				}
				reportTimes(b, took)
			})
		})
	}
}

func reportTimes(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}
