package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/upstream"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// Embedder computes what texts mean. It must be safe for concurrent use.
type Embedder interface {
	// Model names what the vectors are comparable within, in at most
	// eventlog.MaxID bytes: another model, or other dimensions, is another
	// name.
	Model() string
	// Embed returns one vector for each text, in their order, all of as many
	// dimensions, none of them zero. Their length does not matter. It returns
	// soon after ctx has ended: saves, and [Manager.Shutdown], wait for it.
	Embed(ctx context.Context, texts []string) ([][]float32, error)
}

// How long an embedder may take.
const (
	// SaveTimeout is for a memory right after it was saved, until its vector is
	// in the log; with the inline executor, a caller waits.
	SaveTimeout = 10 * time.Second
	// EmbedTimeout is for a batch of pending memories.
	EmbedTimeout = 30 * time.Second
	// QuestionTimeout is for the text of a search, while a caller waits.
	QuestionTimeout = 2 * time.Second
)

// embed asks the embedder and checks what it says. Vectors have unit length.
func (m *Manager) embed(ctx context.Context, timeout time.Duration, of string, texts ...string) (vectors []fact.Vector, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer func() { m.opts.Metrics.embedded(of, len(texts), err) }()
	raw, err := callEmbedder(ctx, m.opts.Embedder, texts)
	if err != nil {
		return nil, err
	}
	if len(raw) != len(texts) {
		return nil, fmt.Errorf("memory: the embedder gave %d vectors for %d texts", len(raw), len(texts))
	}
	vectors = make([]fact.Vector, len(raw))
	for i, v := range raw {
		if vectors[i], err = unit(v); err != nil {
			return nil, err
		}
	}
	return vectors, nil
}

// callEmbedder makes a panic an error: memories must be saved even if an
// embedder fails.
func callEmbedder(ctx context.Context, e Embedder, texts []string) (_ [][]float32, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("memory: the embedder panicked")
		}
	}()
	return e.Embed(ctx, texts)
}

// unit returns the vector of length 1 that points where v does.
func unit(v []float32) (fact.Vector, error) {
	var squares float64
	for _, x := range v {
		squares += float64(x) * float64(x)
	}
	length := math.Sqrt(squares)
	switch {
	case len(v) > fact.MaxDimensions:
		return nil, fmt.Errorf("memory: the embedder gave %d dimensions, more than %d", len(v), fact.MaxDimensions)
	case length == 0 || math.IsNaN(length) || math.IsInf(length, 0):
		return nil, errors.New("memory: the embedder gave a vector without a direction")
	}
	u := make(fact.Vector, len(v))
	for i, x := range v {
		u[i] = float32(float64(x) / length)
	}
	return u, nil
}

// embedSaved has the vector of a memory computed and returns whether that is
// done when the executor returns.
func (m *Manager) embedSaved(ctx context.Context, memory readmodel.Memory) readmodel.EmbeddingStatus {
	if m.opts.Embedder == nil {
		return readmodel.EmbeddingPending
	}
	var done atomic.Bool
	m.opts.Executor.Execute(ctx, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, SaveTimeout)
		defer cancel()
		err := m.embedOne(ctx, memory)
		if err != nil && !errors.Is(err, readmodel.ErrNoMemory) {
			m.stayPending(memory, err)
		}
		done.Store(err == nil)
	})
	if done.Load() {
		return readmodel.EmbeddingComplete
	}
	return readmodel.EmbeddingPending
}

// embedOne computes and writes the vector of a memory, which may have waited for
// that: what was forgotten or erased meanwhile is shown to no embedder. Errors:
// readmodel.ErrNoMemory for that; the embedder's, the log's.
func (m *Manager) embedOne(ctx context.Context, memory readmodel.Memory) error {
	if _, atOnce := m.opts.Executor.(inline); !atOnce {
		forgotten, err := m.forgottenSince(ctx, memory.Scope.LogID(), memory.Sequence)
		switch {
		case err != nil:
			return err
		case forgotten[memory.ID]:
			return readmodel.ErrForgotten
		}
	}
	vectors, err := m.embed(ctx, SaveTimeout, ofMemory, memory.Content)
	if err != nil {
		return err
	}
	return m.store(ctx, []readmodel.Memory{memory}, vectors)
}

// store writes vectors of memories of one scope.
func (m *Manager) store(ctx context.Context, memories []readmodel.Memory, vectors []fact.Vector) error {
	log, facts := memories[0].Scope.LogID(), make([]fact.Fact, len(memories))
	for i, memory := range memories {
		facts[i] = &fact.MemoryEmbedded{MemoryID: memory.ID, Model: m.model(), Vector: vectors[i], Base: m.base(log)}
	}
	return m.update(ctx, log, memories[0].Sequence, facts...)
}

// stayPending logs why a memory has no vector. An embedder's own words are left
// out: they may repeat the memory's.
func (m *Manager) stayPending(memory readmodel.Memory, err error) {
	m.opts.Logger.Warn("a memory has no vector yet", append([]any{"scope", memory.Scope.Kind, "memory", memory.ID}, causeOf(err)...)...)
}

// causeOf returns log attributes of an embedder's failure: its code, and what its server did.
func causeOf(err error) []any {
	cause := "internal"
	if e, ok := errors.AsType[*model.Error](err); ok {
		cause = e.Code
	}
	return append([]any{"cause", cause}, upstream.Attrs(err)...)
}
