package client

import (
	"context"
)

// Target is a place in a session's history: one of the fields is set.
type Target struct {
	CheckpointID string `json:"checkpointId,omitempty"`
	Sequence     uint64 `json:"sequence,omitempty"`
}

// RolledBack tells what a rollback has done.
type RolledBack struct {
	SessionID string `json:"sessionId"`
	// RolledBack is false if there was nothing to take back.
	RolledBack bool `json:"rolledBack"`
	// AfterSequence is the record that the session went back to, AtSequence
	// the last one that was struck.
	AfterSequence uint64 `json:"afterSequence,omitempty"`
	AtSequence    uint64 `json:"atSequence,omitempty"`
}

// Rollback takes a session back. It is not repeated: it would also strike what
// others have appended meanwhile.
func (c *Client) Rollback(ctx context.Context, sessionID string, to Target) (RolledBack, error) {
	return fetch(ctx, c, post("rollback", false, to).of("sessions", sessionID), func(r *RolledBack) bool { return r.SessionID != "" })
}

// ForkRequest says what is forked. The zero value forks at the head, under an
// id that the server chooses.
type ForkRequest struct {
	Target
	// MessageIndex, if set, is instead the message behind which the fork
	// begins, from 0.
	MessageIndex *int   `json:"messageIndex,omitempty"`
	SessionID    string `json:"sessionId,omitempty"` // of the fork
}

// Forked names a fork.
type Forked struct {
	SessionID     string `json:"sessionId"`
	FromSessionID string `json:"fromSessionId"`
	FromSequence  uint64 `json:"fromSequence"`
}

// Fork makes a session of another one's past. It is repeated if it names the
// new session, which is then made once; at the head it may be another head by
// then, and that is SESSION_EXISTS.
func (c *Client) Fork(ctx context.Context, fromSessionID string, r ForkRequest) (Forked, error) {
	return fetch(ctx, c, post("fork", r.SessionID != "", r).of("sessions", fromSessionID), func(f *Forked) bool { return f.SessionID != "" })
}
