package fact

import "encoding/json"

// Facts of memories. All but MemoryRecalled are in the log of their scope,
// whose first record is a MemorySaved.
type (
	// MemorySaved is a memory. The first one of an id counts, even if it was
	// forgotten since: an id always names the same text.
	MemorySaved struct {
		MemoryID string          `json:"memoryId" helix:"id"`
		Content  string          `json:"content"`
		Tags     []string        `json:"tags,omitempty"`
		Metadata json.RawMessage `json:"metadata,omitempty" helix:"object"` // an object
		// Source is where it was saved, nil if outside of a session.
		Source *MemorySource `json:"source,omitempty"`
		Base
	}

	// MemoryEmbedded is a memory's vector as a model has computed it. The last
	// one of a model counts.
	MemoryEmbedded struct {
		MemoryID string `json:"memoryId" helix:"id"`
		Model    string `json:"model" helix:"id"`
		Vector   Vector `json:"vector"`
		Base
	}

	// MemoryForgotten says that a memory is not to be recalled any more, for
	// good.
	MemoryForgotten struct {
		MemoryID string `json:"memoryId" helix:"id"`
		Base
	}

	// MemoryRecalled says what a session's agent was reminded of at the
	// beginning of a turn, once a turn, also if that is nothing. The memories
	// are one hidden user message.
	MemoryRecalled struct {
		RunID    string           `json:"runId" helix:"id"`
		Query    string           `json:"query"`
		Memories []RecalledMemory `json:"memories,omitempty"`
		// Error is why nothing could be recalled; the turn continues without memories.
		Error string `json:"error,omitempty"`
		Base
	}
)

// Limits of a memory.
const (
	MaxMemory         = 16 << 10 // bytes of its content
	MaxMemoryMetadata = 16 << 10 // bytes of JSON
	MaxMemoryTags     = 32       // each at most eventlog.MaxID bytes
)

// MemorySource is where a memory was saved.
type MemorySource struct {
	SessionID  string `json:"sessionId" helix:"id"`
	AgentType  string `json:"agentType"`
	RunID      string `json:"runId,omitempty"`
	ToolCallID string `json:"toolCallId,omitempty"`
}

// RecalledMemory is a memory as it was when it was recalled.
type RecalledMemory struct {
	MemoryID string `json:"memoryId" helix:"id"`
	Content  string `json:"content"`
	// Score says how well it fits, at least 0; greater is better.
	Score float64 `json:"score"`
}

func (*MemorySaved) Type() string     { return "memory_saved" }
func (*MemoryEmbedded) Type() string  { return "memory_embedded" }
func (*MemoryForgotten) Type() string { return "memory_forgotten" }
func (*MemoryRecalled) Type() string  { return "memory_recalled" }
