package fact

import "encoding/json"

// SessionForked is the first record of a session that was copied from another one. It
// does not depend on that session.
type SessionForked struct {
	FromSessionID string `json:"fromSessionId" helix:"id"`
	FromSequence  uint64 `json:"fromSequence"` // in that session's log
	// State is the state of the new session, an object that package
	// projector writes and reads.
	State json.RawMessage `json:"state" helix:"object"`
	// Edits names the differences between State and the other session's state;
	// nil: there are none.
	Edits *ForkEdits `json:"edits,omitempty"`
	Base
}

func (*SessionForked) Type() string { return "session_forked" }

// ForkEdits names what was edited in a fork's first state.
type ForkEdits struct {
	Message      *int   `json:"message,omitempty" helix:"count"` // the index of a user's message whose text was changed
	ToolCallID   string `json:"toolCallId,omitempty" helix:"id"` // whose result is another one, or was given
	SystemPrompt bool   `json:"systemPrompt,omitempty"`          // the session has its own
	Digest       string `json:"digest" helix:"id"`               // of the request; a repeated request has the same one
}
