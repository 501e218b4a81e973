package memory_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/eventlog"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

// rankings is an index of given rankings.
type rankings struct {
	readmodel.Memories
	words, meaning []readmodel.RankedMemory
	asked          readmodel.MemoryQuery
}

func (r *rankings) Candidates(_ context.Context, q readmodel.MemoryQuery) (readmodel.Answer[readmodel.MemoryCandidates], error) {
	r.asked = q
	c := readmodel.MemoryCandidates{ByWords: r.words}
	if q.Vector != nil {
		c.ByMeaning = r.meaning
	}
	return readmodel.Answer[readmodel.MemoryCandidates]{Value: c, Fresh: readmodel.Fresh{Current: true}}, nil
}

func one(id string, created int64, score float64) readmodel.RankedMemory {
	return readmodel.RankedMemory{Memory: readmodel.Memory{ID: id, Content: id, CreatedAt: created}, Score: score}
}

func TestRankingsAreJoined(t *testing.T) {
	x := &rankings{
		words:   []readmodel.RankedMemory{one("both", 1, 9), one("words", 5, 8), one("common", 2, 7)},
		meaning: []readmodel.RankedMemory{one("common", 2, 0.9), one("near", 7, 0.5), one("both", 1, 0.4), one("far", 9, 0.1)},
	}
	m := newManager(t, memory.Options{Index: x})
	found := search(t, m, "what")
	// The two that are in both rankings, first and third there, fit the same;
	// so do the two that are second in one. The newer is first.
	require.Equal(t, []string{"common", "both", "near", "words"}, hits(found), "what is far by meaning and has no word is left out")
	require.InDelta(t, (1./61+1./63)/(2./61), found.Hits[0].Score, 1e-12)
	require.InDelta(t, found.Hits[0].Score, found.Hits[1].Score, 1e-12)
	require.InDelta(t, (1./62)/(2./61), found.Hits[2].Score, 1e-12)
	require.True(t, found.Fresh.Current)
	require.Equal(t, memory.MaxHits, x.asked.Limit)
	require.Equal(t, "helixd-hash-1-256", x.asked.Model)
	require.Len(t, x.asked.Vector, 256)

	found, err := m.Search(t.Context(), memory.Query{Scope: ada, Text: "what", Limit: 1, Exclude: []string{"x"}})
	require.NoError(t, err)
	require.Equal(t, []string{"common"}, hits(found))
	require.Equal(t, []string{"x"}, x.asked.Exclude)

	strict := newManager(t, memory.Options{Index: x, MinCosine: 0.6})
	require.Equal(t, []string{"common", "both", "words"}, hits(search(t, strict, "what")))
	plain := memory.New(memory.Options{Log: logmemory.New(), Index: x})
	found = search(t, plain, "what")
	require.Equal(t, []string{"both", "words", "common"}, hits(found), "without an embedder words rank alone")
	require.InDelta(t, 1, found.Hits[0].Score, 1e-12)
	require.False(t, found.WordsOnly, "nothing is out")
}

func TestQuestionsThatCannotBeAsked(t *testing.T) {
	m := newManager(t, memory.Options{})
	for want, q := range map[string]memory.Query{
		"scope must be user, agent or session":   {Text: "x"},
		"q must not be empty":                    {Scope: ada, Text: " "},
		"q must be at most 8192 bytes, not 8193": {Scope: ada, Text: strings.Repeat("x", memory.MaxQuestion+1)},
		"q must be valid UTF-8":                  {Scope: ada, Text: "\xff"},
		"limit must be between 1 and 50":         {Scope: ada, Text: "x", Limit: 51},
		"limit must be between 1 and 50 ":        {Scope: ada, Text: "x", Limit: -1},
	} {
		_, err := m.Search(t.Context(), q)
		var invalid *eventlog.ValidationError
		require.ErrorAs(t, err, &invalid)
		require.EqualError(t, err, strings.TrimSpace(want))
	}
	x := &index{log: logmemory.New(), down: readmodel.ErrUnavailable}
	_, err := newManager(t, memory.Options{Index: x}).Search(t.Context(), memory.Query{Scope: ada, Text: "x"})
	require.ErrorIs(t, err, readmodel.ErrUnavailable)
}

// TestASearchOutlivesTheEmbedder: words find what meaning can't be asked for.
func TestASearchOutlivesTheEmbedder(t *testing.T) {
	for name, broken := range map[string]func(context.Context, []string) error{
		"it fails":  func(context.Context, []string) error { return errors.New("no") },
		"it panics": func(context.Context, []string) error { panic("no") },
		"it hangs": func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := logmemory.New()
				save(t, newManager(t, memory.Options{Log: log}), "Ada likes tea.")
				m := newManager(t, memory.Options{Log: log, Embedder: newEmbedder(broken)})
				began := time.Now()
				found := search(t, m, "tea?")
				require.Equal(t, []string{"Ada likes tea."}, hits(found))
				require.True(t, found.WordsOnly)
				require.LessOrEqual(t, time.Since(began), memory.QuestionTimeout)
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	leaves := newEmbedder(func(context.Context, []string) error {
		cancel()
		return ctx.Err()
	})
	_, err := newManager(t, memory.Options{Embedder: leaves}).Search(ctx, memory.Query{Scope: ada, Text: "tea"})
	require.ErrorIs(t, err, context.Canceled, "who has gone needs no answer")
}
