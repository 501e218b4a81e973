package memory_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/memory/embedder/local"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	logmemory "github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector/readmodel"
)

func listed(t *testing.T, m *memory.Manager, scope eventlog.MemoryScope) map[readmodel.EmbeddingStatus]int {
	t.Helper()
	page, err := m.List(t.Context(), scope, readmodel.Paging{Limit: readmodel.MaxPage})
	require.NoError(t, err)
	count := map[readmodel.EmbeddingStatus]int{}
	for _, item := range page.Value.Items {
		count[item.EmbeddingStatus]++
	}
	return count
}

// TestAnOutageLosesNothing: what is saved while the embedder is out is found by
// its words, and by its meaning when it is up again and has been asked.
func TestAnOutageLosesNothing(t *testing.T) {
	var out atomic.Bool
	e := newEmbedder(func(context.Context, []string) error {
		if out.Load() {
			return &model.Error{Code: model.CodeUnavailable, Message: "Ada likes secrets"}
		}
		return nil
	})
	var text bytes.Buffer
	reg := prometheus.NewPedanticRegistry()
	m := newManager(t, memory.Options{Embedder: e, Logger: slog.New(slog.NewTextHandler(&text, nil)), Metrics: memory.NewMetrics(reg)})
	save(t, m, "Ada likes tea.")
	out.Store(true)
	ids := save(t, m, "Ada likes coffee.", "Ada likes milk.")
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 1, "pending": 2}, listed(t, m, ada))
	require.Equal(t, []string{"Ada likes coffee."}, hits(search(t, m, "coffee?")))
	require.Contains(t, text.String(), "scope=user memory="+ids[0]+" cause=provider_unavailable")
	require.NotContains(t, text.String(), "ikes", "nothing of a memory is logged")

	done, err := m.ProcessUnembedded(t.Context())
	require.Equal(t, memory.Processed{Found: 2, Failed: 2}, done)
	var failed *model.Error
	require.ErrorAs(t, err, &failed)

	out.Store(false)
	done, err = m.ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Equal(t, memory.Processed{Found: 2, Embedded: 2}, done)
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 3}, listed(t, m, ada))
	done, err = m.ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Zero(t, done)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP helixd_memory_embeddings_total Texts that were sent to an embedder, by what they are of (memory, question, or probe: a check whether the embedder is available again) and outcome (ok or failed). A memory that failed stays pending.
# TYPE helixd_memory_embeddings_total counter
helixd_memory_embeddings_total{of="memory",outcome="failed"} 4
helixd_memory_embeddings_total{of="memory",outcome="ok"} 3
helixd_memory_embeddings_total{of="probe",outcome="failed"} 1
helixd_memory_embeddings_total{of="question",outcome="failed"} 1
`)))
}

// pending are memories of two scopes that have no vectors.
func pending(t *testing.T, contents ...string) eventlog.Log {
	t.Helper()
	log := logmemory.New()
	m := memory.New(memory.Options{Log: log, Index: &index{log: log}})
	for i, content := range contents {
		scope := ada
		if i%2 == 1 {
			scope.ID = "bob"
		}
		saved, err := m.Save(t.Context(), memory.Draft{Scope: scope, Content: content})
		require.NoError(t, err)
		require.Equal(t, readmodel.EmbeddingPending, saved.EmbeddingStatus)
	}
	return log
}

func TestATextThatCannotBeEmbedded(t *testing.T) {
	var contents []string
	for i := range 300 {
		contents = append(contents, fmt.Sprint("Memory number ", i))
	}
	for _, i := range []int{0, 7, 8, 9, 10, 150, 299} {
		contents[i] = "poison"
	}
	log := pending(t, contents...)
	e := newEmbedder(func(_ context.Context, texts []string) error {
		if slices.Contains(texts, "poison") {
			return errors.New("no")
		}
		return nil
	})
	m := newManager(t, memory.Options{Log: log, Embedder: e})
	done, err := m.ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Equal(t, memory.Processed{Found: 300, Embedded: 293, Failed: 7}, done)
	done, err = m.ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Equal(t, memory.Processed{Found: 7, Failed: 7}, done)
	for _, texts := range e.asked() {
		require.LessOrEqual(t, len(texts), 64)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	log := pending(t, slices.Repeat([]string{strings.Repeat("a memory ", 1800)}, 40)...)
	e := newEmbedder(nil)
	done, err := newManager(t, memory.Options{Log: log, Embedder: e}).ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Equal(t, memory.Processed{Found: 40, Embedded: 40}, done)
	for _, texts := range e.asked() {
		require.LessOrEqual(t, len(strings.Join(texts, "")), 128<<10)
	}
}

// TestItStopsWhenTheEmbedderIsOut: not every memory waits for its time-out.
func TestItStopsWhenTheEmbedderIsOut(t *testing.T) {
	log := pending(t, slices.Repeat([]string{"x"}, 300)...)
	synctest.Test(t, func(t *testing.T) {
		e := newEmbedder(func(ctx context.Context, _ []string) error {
			<-ctx.Done()
			return ctx.Err()
		})
		began := time.Now()
		done, err := newManager(t, memory.Options{Log: log, Embedder: e}).ProcessUnembedded(t.Context())
		require.ErrorContains(t, err, "memory: the embedder is out: ")
		require.Equal(t, done.Found, done.Failed)
		require.LessOrEqual(t, done.Found, 64)
		require.Len(t, e.asked(), 2)
		require.LessOrEqual(t, time.Since(began), 2*memory.EmbedTimeout)
	})
}

// TestItStopsAtARateLimit: calls one by one would run into it, too.
func TestItStopsAtARateLimit(t *testing.T) {
	log := pending(t, slices.Repeat([]string{"x"}, 300)...)
	e := newEmbedder(func(_ context.Context, texts []string) error {
		if len(texts) > 1 {
			return &model.Error{Code: model.CodeRateLimited, Retryable: true}
		}
		return nil
	})
	_, err := newManager(t, memory.Options{Log: log, Embedder: e}).ProcessUnembedded(t.Context())
	require.ErrorIs(t, err, memory.ErrEmbedderOut)
	require.Len(t, e.asked(), 1)
}

func TestTwoProcessAtOnce(t *testing.T) {
	log := pending(t, slices.Repeat([]string{"Ada likes tea."}, 100)...)
	var wg sync.WaitGroup
	shared := newManager(t, memory.Options{Log: log})
	for _, m := range []*memory.Manager{shared, shared, newManager(t, memory.Options{Log: log})} {
		wg.Go(func() {
			if _, err := m.ProcessUnembedded(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 50}, listed(t, shared, ada))
	done, err := shared.ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Zero(t, done)
}

func TestProcessingThatIsCancelled(t *testing.T) {
	log := pending(t, slices.Repeat([]string{"x"}, 10)...)
	ctx, cancel := context.WithCancel(t.Context())
	e := newEmbedder(func(ctx context.Context, _ []string) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	m := newManager(t, memory.Options{Log: log, Embedder: e})
	_, err := m.ProcessUnembedded(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, e.asked(), 1)
	done, err := memory.New(memory.Options{Log: log, Index: &index{log: log}}).ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Zero(t, done, "without an embedder nothing is missing")
}

// TestAnotherModel: what has vectors of one model is pending for another.
func TestAnotherModel(t *testing.T) {
	log := logmemory.New()
	save(t, newManager(t, memory.Options{Log: log}), "Ada likes tea.")
	m := newManager(t, memory.Options{Log: log, Embedder: local.New(64)})
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"pending": 1}, listed(t, m, ada))
	done, err := m.ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Equal(t, memory.Processed{Found: 1, Embedded: 1}, done)
	require.Equal(t, map[readmodel.EmbeddingStatus]int{"complete": 1}, listed(t, m, ada))
}

// TestAnIndexThatIsMadeAnew does not know yet what has vectors.
func TestAnIndexThatIsMadeAnew(t *testing.T) {
	log := pending(t, "x")
	e := newEmbedder(nil)
	_, err := newManager(t, memory.Options{Log: log, Index: &index{log: log, anew: true}, Embedder: e}).ProcessUnembedded(t.Context())
	require.ErrorIs(t, err, readmodel.ErrUnavailable)
	require.Empty(t, e.asked())
}

// TestWhatIsGoneIsNotEmbedded: an embedder, which may be anybody's, is not shown
// what was forgotten or erased, whatever the index still has of it.
func TestWhatIsGoneIsNotEmbedded(t *testing.T) {
	for name, c := range map[string]struct {
		goes func(t *testing.T, m *memory.Manager, id string)
		want [][]string
	}{
		"forgotten": {
			goes: func(t *testing.T, m *memory.Manager, id string) { require.NoError(t, m.Forget(t.Context(), ada, id)) },
			want: [][]string{{"Ada likes tea."}},
		},
		"erased": {goes: func(t *testing.T, m *memory.Manager, _ string) {
			_, err := m.Erase(t.Context(), ada)
			require.NoError(t, err)
			save(t, m, "Ada likes milk.")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			log := logmemory.New()
			wordsOnly := memory.New(memory.Options{Log: log, Index: &index{log: log}})
			ids := save(t, wordsOnly, "A secret.", "Ada likes tea.")
			e, behind := newEmbedder(nil), lagsFrom(t, log)
			c.goes(t, wordsOnly, ids[0])
			done, err := newManager(t, memory.Options{Log: log, Index: behind, Embedder: e}).ProcessUnembedded(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, e.asked())
			require.Equal(t, memory.Processed{Found: len(c.want), Embedded: len(c.want)}, done)
		})
	}
}

// TestWhatGoesWhileItIsProcessed is not embedded either.
func TestWhatGoesWhileItIsProcessed(t *testing.T) {
	log := pending(t, "Ada likes tea.", "Bob has a secret.")
	other := newManager(t, memory.Options{Log: log})
	e := newEmbedder(func(ctx context.Context, _ []string) error {
		_, err := other.Erase(ctx, eventlog.MemoryScope{Kind: eventlog.MemoryOfUser, ID: "bob"})
		return err
	})
	done, err := newManager(t, memory.Options{Log: log, Embedder: e}).ProcessUnembedded(t.Context())
	require.NoError(t, err)
	require.Equal(t, [][]string{{"Ada likes tea."}}, e.asked())
	require.Equal(t, memory.Processed{Found: 1, Embedded: 1}, done)
}

type saying [][]float32

func (saying) Model() string                                          { return "m" }
func (s saying) Embed(context.Context, []string) ([][]float32, error) { return s, nil }

func TestVectorsAreChecked(t *testing.T) {
	nan := float32(0)
	nan /= nan
	for name, said := range map[string]saying{
		"none": {}, "too many": {{1}, {1}}, "empty": {{}}, "zero": {{0, 0}}, "not a number": {{nan}},
		"too long": {make([]float32, fact.MaxDimensions+1)},
	} {
		log := logmemory.New()
		m := newManager(t, memory.Options{Log: log, Embedder: said})
		save(t, m, "x")
		require.Equal(t, []string{"memory_saved"}, typesOf(t, log, ada), name)
	}
	log := logmemory.New()
	save(t, newManager(t, memory.Options{Log: log, Embedder: saying{{3, -4}}}), "x")
	for r, err := range log.Read(t.Context(), ada.LogID(), 1, 0) {
		require.NoError(t, err)
		f, err := r.Fact()
		require.NoError(t, err)
		require.Equal(t, fact.Vector{0.6, -0.8}, f.(*fact.MemoryEmbedded).Vector, "of unit length")
	}
}
