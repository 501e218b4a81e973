package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Memory is a memory as the log has it.
type Memory struct {
	ID        string               `json:"memoryId"`
	Scope     eventlog.MemoryScope `json:"scope"`
	Content   string               `json:"content"`
	Tags      []string             `json:"tags,omitempty"`
	Metadata  json.RawMessage      `json:"metadata,omitempty"`
	Source    *fact.MemorySource   `json:"source,omitempty"`
	CreatedAt int64                `json:"createdAt"` // ms since the epoch
	Sequence  uint64               `json:"sequence"`  // of its record
	// EmbeddingStatus is complete if the log has a vector of the requested model.
	EmbeddingStatus EmbeddingStatus `json:"embeddingStatus"`
}

// EmbeddingStatus says whether a memory can be found by its meaning.
type EmbeddingStatus string

// Embedding states.
const (
	EmbeddingPending  EmbeddingStatus = "pending"
	EmbeddingComplete EmbeddingStatus = "complete"
)

// Memories is the index of all scopes' memories. They are found by words at once, by
// meaning as soon as their vectors are in the log. The index is derived from the log and
// can be removed. It does not have forgotten memories, and an id that was forgotten is
// not added again. Errors: as [Models].
type Memories interface {
	// Candidates finds the memories of a scope that fit best, by words and by meaning. It
	// includes everything that the log held when it was called, unless the answer's Fresh
	// says otherwise. By words, a large scope is ranked in two steps: the newest memories
	// that have the question's rarest words are picked first, and only those are ranked
	// exactly. By meaning, all vectors are compared. Other scopes have no influence on
	// the result.
	Candidates(ctx context.Context, q MemoryQuery) (Answer[MemoryCandidates], error)
	// Memory returns one memory of a scope. Further errors: ErrNoMemory; ErrForgotten if
	// it was forgotten, with the answer's Fresh.
	Memory(ctx context.Context, scope eventlog.MemoryScope, id, model string) (Answer[Memory], error)
	// ListMemories lists a scope's memories, newest first.
	ListMemories(ctx context.Context, scope eventlog.MemoryScope, model string, page Paging) (Answer[MemoryPage], error)
	// PendingMemories lists memories of all scopes that have no vector of the model, by
	// scope and sequence: those after the cursor, at most limit.
	PendingMemories(ctx context.Context, model string, after PendingCursor, limit int) (Answer[Pending], error)
}

// MemoryQuery asks for candidates.
type MemoryQuery struct {
	Scope  eventlog.MemoryScope
	Text   string    // any text; only its first few hundred words count; empty: no ranking by words
	Model  string    // of the vector; empty: no ranking by meaning
	Vector []float32 // of unit length; nil: no ranking by meaning
	Limit  int       // of each list, 1 to MaxPage
	// Exclude are the ids of memories to leave out.
	Exclude []string
}

// MemoryCandidates are two rankings, best first.
type MemoryCandidates struct {
	ByWords   []RankedMemory
	ByMeaning []RankedMemory
	// Head is the sequence up to which the scope's log is indexed; 0: not at all.
	Head uint64
}

// RankedMemory is a memory with its score: greater is better, comparable within a list
// only. By words the score is BM25, above 0; by meaning it is the cosine. Of equal scores
// the newest is first.
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
	// Heads are the sequences up to which their logs are indexed.
	Heads map[string]uint64
}

// PendingCursor is the place in the list of pending memories after which to continue.
type PendingCursor struct {
	Log      string
	Sequence uint64
}

// ErrNoMemory: the scope has no such memory, or it was forgotten.
var ErrNoMemory = errors.New("readmodel: no such memory")

// ErrForgotten is the ErrNoMemory of a memory that was forgotten: its id is not used
// again.
var ErrForgotten = fmt.Errorf("%w: it was forgotten", ErrNoMemory)
