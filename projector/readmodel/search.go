package readmodel

import "github.com/helixd/helixd/projector"

// SearchQuery searches for words in messages and tool calls. All words must occur;
// "quoted words" must be adjacent; case and accents don't matter. There is no other
// syntax. A search with a session, a user, a tenant or Visible reads only the texts of
// those sessions, at most MaxSearched bytes: other sessions change neither its order nor
// its time.
type SearchQuery struct {
	Text      string // 1 to MaxQueryBytes bytes, at most MaxQueryTerms terms
	SessionID string // of a root, with its sub-agents; empty: all
	UserID    string // empty: all
	Tenant    string // of the tree's root; empty: all
	AgentType string // empty: all
	Visible   Visible
	Paging    // Offset < MaxHits
}

// HitKind says what a hit is in.
type HitKind string

// Kinds of hits.
const (
	HitMessage    HitKind = "message"     // a user's or an assistant's text
	HitToolCall   HitKind = "tool_call"   // a tool's name and arguments
	HitToolResult HitKind = "tool_result" // a tool's name and result or error
)

// Hit is a message or a part of one that has the words. Truncated messages are not found.
type Hit struct {
	SessionID     string         `json:"sessionId"`
	RootSessionID string         `json:"rootSessionId"`
	AgentType     string         `json:"agentType"`
	UserID        string         `json:"userId,omitempty"`
	Kind          HitKind        `json:"kind"`
	Role          projector.Role `json:"role"`
	ToolName      string         `json:"toolName,omitempty"`
	ToolCallID    string         `json:"toolCallId,omitempty"`
	Sequence      uint64         `json:"sequence"`  // of the record that the message comes from
	Timestamp     int64          `json:"timestamp"` // ms since the epoch
	// Snippet is plain text around the words.
	Snippet string `json:"snippet"`
}
