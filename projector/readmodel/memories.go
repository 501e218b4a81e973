package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
)

// Memory is a memory as the log has it.
type Memory struct {
	ID        string                 `json:"memoryId"`
	Scope     eventlog.MemoryScope   `json:"scope"`
	Content   string                 `json:"content"`
	Tags      []string               `json:"tags,omitempty"`
	Metadata  json.RawMessage        `json:"metadata,omitempty"`
	Source    *eventlog.MemorySource `json:"source,omitempty"`
	CreatedAt int64                  `json:"createdAt"` // ms since the epoch
	Sequence  uint64                 `json:"sequence"`  // of its record
	// EmbeddingStatus is complete when it has a vector of the model that was
	// asked for.
	EmbeddingStatus EmbeddingStatus `json:"embeddingStatus"`
}

// EmbeddingStatus says whether a memory can be found by its meaning.
type EmbeddingStatus string

// Embedding states.
const (
	EmbeddingPending  EmbeddingStatus = "pending"
	EmbeddingComplete EmbeddingStatus = "complete"
)

// Memories is the index of all scopes' memories: by words at once, by meaning
// when their vectors are in the log. It is derived from the log and can be
// thrown away. Forgotten memories are not in it, and none comes back that is saved
// again under the same id. Errors: as [Models].
type Memories interface {
	// Candidates finds the memories of a scope that fit best, by words and by
	// meaning. What the log held when it was asked is in, unless the answer's
	// Fresh says otherwise. In a large scope both are picked roughly before they
	// are ranked exactly: by words, the newest of those that have the question's
	// rarest words; by meaning, those whose vectors point about the same way. No
	// other scope has a part in it.
	Candidates(ctx context.Context, q MemoryQuery) (Answer[MemoryCandidates], error)
	// Memory returns one memory of a scope. Errors also: ErrNoMemory, and of one
	// that was forgotten ErrForgotten, with the answer's Fresh.
	Memory(ctx context.Context, scope eventlog.MemoryScope, id, model string) (Answer[Memory], error)
	// ListMemories lists a scope's, newest first.
	ListMemories(ctx context.Context, scope eventlog.MemoryScope, model string, page Paging) (Answer[MemoryPage], error)
	// PendingMemories lists memories of all scopes that have no vector of the
	// model, by scope and sequence, the ones after the given one, at most limit.
	PendingMemories(ctx context.Context, model string, after PendingCursor, limit int) (Answer[Pending], error)
}

// MemoryQuery asks for candidates.
type MemoryQuery struct {
	Scope  eventlog.MemoryScope
	Text   string    // any text, of whose words the first few hundred count; empty: not by words
	Model  string    // of the vector; empty: not by meaning
	Vector []float32 // of unit length; nil: not by meaning
	Limit  int       // of each list, 1 to MaxPage
	// Exclude are ids that are not wanted.
	Exclude []string
}

// MemoryCandidates are two rankings, best first.
type MemoryCandidates struct {
	ByWords   []RankedMemory
	ByMeaning []RankedMemory
	// Head is the record up to which the scope's log is known; 0: not at all.
	Head uint64
}

// RankedMemory is a memory and how well it fits: greater is better, comparable
// within a list only. By words it is BM25, over 0; by meaning the cosine. Of
// those that fit alike the newest is first.
type RankedMemory struct {
	Memory
	Score float64
}

// MemoryPage is a page of a scope's memories.
type MemoryPage struct {
	Page[Memory]
	// Head is as that of MemoryCandidates.
	Head uint64
}

// Pending are memories without a vector.
type Pending struct {
	Items []Memory
	// Heads are the records up to which their logs are known.
	Heads map[string]uint64
}

// PendingCursor is up to where pending memories are known.
type PendingCursor struct {
	Log      string
	Sequence uint64
}

// ErrNoMemory: the scope has no such memory, or it was forgotten.
var ErrNoMemory = errors.New("readmodel: no such memory")

// ErrForgotten is the ErrNoMemory of one that was forgotten: its id is not used
// again.
var ErrForgotten = fmt.Errorf("%w: it was forgotten", ErrNoMemory)
