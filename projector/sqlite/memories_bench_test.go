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

// sentences generates texts like those of people: some words are in most of them, most
// words in few.
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
func remembering(b *testing.B, memories, dimensions int) (*world, eventlog.MemoryScope, [][]float32) {
	w := newWorld(b)
	w.opts.Logger = nil
	s := userScope("u")
	rnd := rand.New(rand.NewPCG(4, 4))
	sentence, vectors := sentences(rnd), clustered(rnd, memories, dimensions)
	const batch = 250
	for i := 0; i < memories; i += batch {
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
	b.Logf("%d memories of %d dimensions: made in %v", memories, dimensions, time.Since(began))
	return w, s, vectors
}

// current waits until the rows are current.
func (w *world) current() {
	w.t.Helper()
	for !w.models.await(w.t.Context()).Current {
		require.NoError(w.t, w.t.Context().Err())
	}
}

// BenchmarkRecall measures a query by words and by meaning together, among the memories
// of one scope. Among 10,000 it must take less than 20 ms. Above that the time grows with
// their number, and faster once their vectors take more than maxVectorBytes. "cold" is
// the first query after a restart, with the file in the system's page cache; "forgotten"
// is the first query after a memory was forgotten.
func BenchmarkRecall(b *testing.B) {
	for _, size := range []struct{ memories, dimensions int }{{10_000, 256}, {10_000, 1536}, {100_000, 256}, {40_000, 1536}} {
		b.Run(fmt.Sprintf("memories=%d/dimensions=%d", size.memories, size.dimensions), func(b *testing.B) {
			w, s, vectors := remembering(b, size.memories, size.dimensions)
			rnd := rand.New(rand.NewPCG(5, 5))
			sentence := sentences(rnd)
			both := func() readmodel.MemoryQuery {
				return readmodel.MemoryQuery{
					Scope: s, Limit: 50, Text: sentence(), Model: embedderA, Vector: near(rnd, vectors[rnd.IntN(len(vectors))]),
				}
			}
			for range 100 { // the first ones after a rebuild, and after a start, are slower
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
						q.Exclude = append(q.Exclude, fmt.Sprint("m", rnd.IntN(len(vectors))))
					}
				}},
				{name: "cold", before: func() {
					w.open()
					w.current()
				}},
				{name: "forgotten", before: func() {
					w.append(s.LogID(), memoryForgotten(s, fmt.Sprint("m", rnd.IntN(len(vectors)))))
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
		})
	}
}

func reportTimes(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}
