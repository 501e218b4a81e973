package api

import (
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// FoundMemory is a memory of a listing or, with a score, of a search.
type FoundMemory struct {
	readmodel.Memory
	// Score says how well the memory matches the search, from 0 (exclusive) to 1. It is
	// absent in a listing.
	Score float64 `json:"score,omitempty"`
}

// FoundMemories is the answer of GET /memories.
type FoundMemories struct {
	Listing[FoundMemory]
	// WordsOnly: the embedder failed, so the search found memories by their words only.
	WordsOnly bool `json:"wordsOnly,omitempty"`
}

// ForgottenMemory is the answer of DELETE /memories/{memoryId}.
type ForgottenMemory struct {
	MemoryID string `json:"memoryId"`
}

// ErasedMemories is the answer of DELETE /memories. Pending, with status 202,
// means that bytes may be left; the same request continues the erasure.
type ErasedMemories struct {
	Scope   eventlog.MemoryScope `json:"scope"`
	Pending bool                 `json:"pending"`
}

// ProcessedMemories is the answer of POST /memories/process.
type ProcessedMemories struct {
	Found    int `json:"found"`    // memories without a vector
	Embedded int `json:"embedded"` // that have one now
	Failed   int `json:"failed"`   // whose text the embedder refuses
}
