package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// Target is a place in a session's history: one of the fields is set.
type Target struct {
	CheckpointID string `json:"checkpointId,omitempty"`
	Sequence     uint64 `json:"sequence,omitempty"`
}

// Rollback takes a session back. It is not repeated: it would also truncate what
// others have appended meanwhile.
func (c *Client) Rollback(ctx context.Context, sessionID string, to Target) (api.RolledBack, error) {
	return fetch(ctx, c, post("rollback", false, to).of("sessions", sessionID), func(r *api.RolledBack) bool { return r.SessionID != "" })
}

// ForkRequest says what is forked. The zero value forks at the head, under an
// id that the server chooses.
type ForkRequest struct {
	Target
	// MessageIndex, if set, is instead the message after which the fork
	// begins, from 0.
	MessageIndex *int   `json:"messageIndex,omitempty"`
	SessionID    string `json:"sessionId,omitempty"` // of the fork
	// Edit, if set, changes what the fork begins with.
	Edit *ForkEdit `json:"edit,omitempty"`
	// Run has the fork run on at once, with Message if that is not empty.
	Run     bool   `json:"run,omitempty"`
	Message string `json:"message,omitempty"`
}

// ForkEdit says in what a fork differs from the other session. Later records that depend on
// the edited part are left out.
type ForkEdit struct {
	Message      *MessageEdit `json:"message,omitempty"`
	ToolResult   *ResultEdit  `json:"toolResult,omitempty"`
	SystemPrompt *string      `json:"systemPrompt,omitempty"` // in place of the agent's
}

// MessageEdit replaces the text of a user's message.
type MessageEdit struct {
	Content string `json:"content"`
	Index   *int   `json:"index,omitempty"` // from 0; nil: the last one
}

// ResultEdit gives a tool call a result: one of Result and Error.
type ResultEdit struct {
	ToolCallID string          `json:"toolCallId"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
}

// Fork makes a session of another one's past. It is repeated if it names the
// new session, which is then made once; at the head it may be another head by
// then, and that is SESSION_EXISTS.
func (c *Client) Fork(ctx context.Context, fromSessionID string, r ForkRequest) (api.Forked, error) {
	return fetch(ctx, c, post("fork", r.SessionID != "", r).of("sessions", fromSessionID), func(f *api.Forked) bool { return f.SessionID != "" })
}

// Replay says what of a session's stream is replayed, From < sequence <= To, and
// how fast.
type Replay struct {
	From uint64
	To   uint64 // 0: the head
	// Speed is how many times as fast as it was, from 0.01 to 1000; 0: 1.
	Speed float64
	// MaxPause is the longest pause, at most 10 min; 0: 2 s, negative: there are
	// none.
	MaxPause time.Duration
}

func (r Replay) query(from uint64) url.Values {
	q := given(map[string]string{"from": strconv.FormatUint(from, 10), "to": positive(r.To)})
	if r.Speed != 0 {
		q.Set("speed", strconv.FormatFloat(r.Speed, 'f', -1, 64))
	}
	if r.MaxPause != 0 {
		q.Set("maxPause", strconv.FormatInt(max(r.MaxPause.Milliseconds(), 0), 10))
	}
	return q
}

// Replay yields what [Client.Stream] would have, in the time in which it was
// recorded; the chunks that a marker up to To has truncated are left out. The last
// event says how the session was at To; an EndEvent of status active means that
// it continued there. It is as Stream across connections that break.
func (c *Client) Replay(ctx context.Context, sessionID string, r Replay) iter.Seq2[Event, error] {
	return c.events(ctx, r.From, func(seen uint64) request {
		k := get("replay", r.query(seen)).of("sessions", sessionID)
		k.Accept = remotehttp.EventStream
		return k
	})
}
