package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/httpapi/api"
)

func isState(s *api.StateAt) bool { return s.State != nil }

// State returns the whole state of a session now.
func (c *Client) State(ctx context.Context, sessionID string) (api.StateAt, error) {
	return fetch(ctx, c, get("state", nil).of("sessions", sessionID), isState)
}

// StateAt returns the whole state of a session as it was at a sequence.
func (c *Client) StateAt(ctx context.Context, sessionID string, at uint64) (api.StateAt, error) {
	q := url.Values{"at": {strconv.FormatUint(at, 10)}}
	return fetch(ctx, c, get("state", q).of("sessions", sessionID), isState)
}

// Diff returns how the state has changed between two sequences; a nil to is
// the head. If to lies before from, the patch leads back.
func (c *Client) Diff(ctx context.Context, sessionID string, from uint64, to *uint64) (api.StateDiff, error) {
	return fetch(ctx, c, get("diff", between(from, to)).of("sessions", sessionID), func(d *api.StateDiff) bool { return d.Patch != nil })
}

// Spent returns the usage part of [Client.Diff], without the rest, which
// grows with the conversation.
func (c *Client) Spent(ctx context.Context, sessionID string, from uint64, to *uint64) (api.DiffSpent, error) {
	q := between(from, to)
	q.Set("only", "spent")
	return fetch[api.DiffSpent](ctx, c, get("diff", q).of("sessions", sessionID), nil)
}

func between(from uint64, to *uint64) url.Values {
	q := url.Values{"from": {strconv.FormatUint(from, 10)}}
	if to != nil {
		q.Set("to", strconv.FormatUint(*to, 10))
	}
	return q
}

// Files returns a page of what a folder of a session's workspace holds now, with the
// content of its folders; an empty folder: all of the workspace.
func (c *Client) Files(ctx context.Context, sessionID, folder string, p Paging) (api.FilesPage, error) {
	q := given(map[string]string{"path": folder})
	return fetch(ctx, c, get("files", p.to(q)).of("sessions", sessionID), func(f *api.FilesPage) bool { return isPage(&f.Page) })
}

// Workspace describes a session's workspace; nil: it has none.
func (c *Client) Workspace(ctx context.Context, sessionID string) (*api.Workspace, error) {
	type answer struct {
		Workspace json.RawMessage `json:"workspace"`
	}
	q := url.Values{"sessionId": {sessionID}}
	a, err := fetch(ctx, c, get("workspace", q), func(a *answer) bool { return a.Workspace != nil })
	if err != nil {
		return nil, err
	}
	var w *api.Workspace
	if err := json.Unmarshal(a.Workspace, &w); err != nil {
		return nil, fmt.Errorf("%w: the workspace is no JSON object", ErrMalformed)
	}
	return w, nil
}
