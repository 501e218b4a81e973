package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/httpapi/api"
)

// SnapshotOptions say what a snapshot holds.
type SnapshotOptions struct {
	// IncludePartialContent says whether an unfinished assistant message is
	// in the snapshot; else it is left out whole, and a client that follows from
	// StreamSequence gets all of it. Nil: as the server is set up, and at a
	// pause it is in.
	IncludePartialContent *bool
}

// Snapshot returns what a chat client starts from.
func (c *Client) Snapshot(ctx context.Context, sessionID string, o SnapshotOptions) (api.Snapshot[api.UIMessage], error) {
	q := url.Values{}
	if o.IncludePartialContent != nil {
		q.Set("includePartialContent", strconv.FormatBool(*o.IncludePartialContent))
	}
	return fetch(ctx, c, get("snapshot", q).of("chat", sessionID), func(s *api.Snapshot[api.UIMessage]) bool { return s.Status != "" })
}

// HistoryOptions say what a history holds.
type HistoryOptions struct {
	Paging
	NoReasoning   bool // reasoning is left out
	NoToolResults bool // calls are shown without what came of them
}

// Messages returns a page of the messages that a snapshot has.
func (c *Client) Messages(ctx context.Context, sessionID string, o HistoryOptions) (api.History[api.UIMessage], error) {
	q := o.to(url.Values{})
	if o.NoReasoning {
		q.Set("includeReasoning", "false")
	}
	if o.NoToolResults {
		q.Set("includeToolResults", "false")
	}
	return fetch(ctx, c, get("messages", q).of("chat", sessionID), func(h *api.History[api.UIMessage]) bool { return h.Messages != nil })
}
