package client

import (
	"context"
	"encoding/json"
	"net/url"

	"github.com/helixd/helixd/eventlog"
)

// UIMessage is a message as AI SDK clients have it.
type UIMessage struct {
	ID       string            `json:"id"`
	Role     string            `json:"role"` // user or assistant
	Metadata json.RawMessage   `json:"metadata,omitempty"`
	Parts    []json.RawMessage `json:"parts"` // each an object with a type
}

// Snapshot is what a chat client starts from (document 001).
type Snapshot struct {
	State    json.RawMessage `json:"state"` // the custom state
	Messages []UIMessage     `json:"messages"`
	// StreamSequence is n: everything here is of the records <= n.
	StreamSequence uint64                `json:"streamSequence"`
	Status         eventlog.StreamStatus `json:"status"`    // of the stream now
	Timestamp      int64                 `json:"timestamp"` // ms since the epoch
}

// SnapshotOptions say what a snapshot holds.
type SnapshotOptions struct {
	// IncludePartialContent tells whether an unfinished assistant message is
	// in the snapshot; else it is left out whole, and a client that follows from
	// StreamSequence gets all of it. Nil: as the server is set up, and at a
	// pause it is in.
	IncludePartialContent *bool
}

// Snapshot returns what a chat client starts from.
func (c *Client) Snapshot(ctx context.Context, sessionID string, o SnapshotOptions) (Snapshot, error) {
	q := url.Values{}
	if o.IncludePartialContent != nil {
		q.Set("includePartialContent", flag(*o.IncludePartialContent))
	}
	return fetch(ctx, c, get("snapshot", q).of("chat", sessionID), func(s *Snapshot) bool { return s.Status != "" })
}

// History is a page of a session's messages, oldest first.
type History struct {
	Messages []UIMessage `json:"messages"`
	HasMore  bool        `json:"hasMore"`
}

// HistoryOptions say what a history holds.
type HistoryOptions struct {
	Paging
	NoReasoning   bool // reasoning is left out
	NoToolResults bool // calls are shown without what came of them
}

// Messages returns a page of the messages that a snapshot has.
func (c *Client) Messages(ctx context.Context, sessionID string, o HistoryOptions) (History, error) {
	q := o.to(url.Values{})
	if o.NoReasoning {
		q.Set("includeReasoning", flag(false))
	}
	if o.NoToolResults {
		q.Set("includeToolResults", flag(false))
	}
	return fetch(ctx, c, get("messages", q).of("chat", sessionID), func(h *History) bool { return h.Messages != nil })
}

func flag(on bool) string {
	if on {
		return "true"
	}
	return "false"
}
