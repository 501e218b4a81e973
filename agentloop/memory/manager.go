package memory

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"github.com/helixd/helixd/agentloop/internal/locks"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/readmodel"
)

// Options are what a manager works with.
type Options struct {
	Log      eventlog.Log       // required
	Index    readmodel.Memories // required
	Embedder Embedder           // nil: memories are found by words only
	Executor Executor           // nil: Inline()
	// MinCosine is how near, from -1 to 1, a memory's vector must at least be
	// to the question's for it to be found by meaning alone; 0 means
	// DefaultMinCosine. It depends on the model: some put all texts near to
	// each other.
	MinCosine float64
	Logger    *slog.Logger // nil: silent
	Metrics   *Metrics     // nil: none
	Now       func() time.Time
	NewID     func() string // unique for all time; nil: random
}

// DefaultMinCosine suits the local embedder and OpenAI's text-embedding-3.
const DefaultMinCosine = 0.25

// Manager saves and finds memories. It is safe for concurrent use, and so are
// several on one log.
type Manager struct {
	opts       Options
	processing chan struct{} // held by ProcessUnembedded
	locks      locks.Table   // of scopes' logs: of many appends at once, all but one would have to try again
}

// New returns a manager. It panics without a log or an index.
func New(o Options) *Manager {
	if o.Log == nil || o.Index == nil {
		panic("memory: a manager needs a log and an index")
	}
	if o.Executor == nil {
		o.Executor = Inline()
	}
	o.MinCosine = cmp.Or(o.MinCosine, DefaultMinCosine)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Metrics = cmp.Or(o.Metrics, NewMetrics(nil))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = rand.Text
	}
	return &Manager{opts: o, processing: make(chan struct{}, 1)}
}

// Shutdown waits for the vectors that are being computed, until ctx ends; what
// is not done then stays pending. Afterwards memories are still saved and found;
// in the background no vectors are computed any more. Errors: ctx's.
func (m *Manager) Shutdown(ctx context.Context) error { return m.opts.Executor.Shutdown(ctx) }

// model names the model of vectors; empty: there are none.
func (m *Manager) model() string {
	if m.opts.Embedder == nil {
		return ""
	}
	return m.opts.Embedder.Model()
}

// List lists the memories of a scope, newest first. What an index that lags
// still has of what was forgotten or erased is left out; of what was forgotten
// its Total may count some. Errors: a *eventlog.ValidationError; those of the
// index and, if that lags, of the log.
func (m *Manager) List(ctx context.Context, scope eventlog.MemoryScope, page readmodel.Paging) (readmodel.Answer[readmodel.Page[readmodel.Memory]], error) {
	if err := scope.Validate(); err != nil {
		return readmodel.Answer[readmodel.Page[readmodel.Memory]]{}, err
	}
	answer, err := m.opts.Index.ListMemories(ctx, scope, m.model(), page)
	listed := readmodel.Answer[readmodel.Page[readmodel.Memory]]{Value: answer.Value.Page, Fresh: answer.Fresh}
	found := &listed.Value
	if err != nil || answer.Fresh.Current || len(found.Items) == 0 {
		return listed, err
	}
	forgotten, err := m.forgottenSince(ctx, scope.LogID(), answer.Value.Head)
	if errors.Is(err, readmodel.ErrNoMemory) {
		*found = readmodel.Page[readmodel.Memory]{Items: []readmodel.Memory{}, Offset: found.Offset, Limit: found.Limit}
		return listed, nil
	}
	shown := without(forgotten, found.Items)
	found.Total -= len(found.Items) - len(shown)
	found.Items = shown
	return listed, err
}

// Forget makes sure that a memory is never found again, nor saved again under its key. Its
// bytes stay in the log until the scope is erased. Errors: readmodel.ErrNoMemory,
// ErrForgotten if it was forgotten before, a *eventlog.ValidationError, those of
// the log.
func (m *Manager) Forget(ctx context.Context, scope eventlog.MemoryScope, id string) error {
	if err := scope.Validate(); err != nil {
		return err
	}
	memory, err := m.lookUp(ctx, scope, id)
	if err != nil {
		return err
	}
	return m.update(ctx, scope.LogID(), memory.Sequence, &fact.MemoryForgotten{MemoryID: id, Base: m.base(scope.LogID())})
}

// Erase removes every byte of a scope's memories, as [eventlog.Log.Erase] does
// it: again until nothing is pending. Errors: a *eventlog.ValidationError, and
// the log's, eventlog.ErrSessionNotFound if the scope has no memories.
func (m *Manager) Erase(ctx context.Context, scope eventlog.MemoryScope) (eventlog.Erasure, error) {
	if err := scope.Validate(); err != nil {
		return eventlog.Erasure{}, err
	}
	return m.opts.Log.Erase(ctx, scope.LogID())
}

func (m *Manager) base(log string) fact.Base {
	return fact.Base{SessionID: log, Timestamp: m.opts.Now().UnixMilli()}
}

func invalid(field, reason string) error {
	return &eventlog.ValidationError{Field: field, Reason: reason}
}
