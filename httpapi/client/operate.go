package client

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
)

// Erased tells what an erasure has done. Pending means that bytes may be left:
// the session is not found any more, and another Erase goes on with them.
type Erased struct {
	SessionID string   `json:"sessionId"`
	Pending   bool     `json:"pending"`
	Forks     []string `json:"forks"` // sessions that were forked from it and keep what they took
}

// Erase erases a session for good. It is repeated: if the answer to a first
// try was lost, there may be nothing left, which is NOT_FOUND.
func (c *Client) Erase(ctx context.Context, sessionID string) (Erased, error) {
	k := call{safe: true, Request: remote.Request{Method: http.MethodDelete}}
	return fetch(ctx, c, k.of("sessions", sessionID), func(e *Erased) bool { return e.SessionID != "" })
}

// Retention says what may be removed, of all sessions. At least one of the
// fields is set.
type Retention struct {
	// PurgeOlderThan removes records from the log that are in segments.
	// Nothing changes for readers.
	PurgeOlderThan *time.Duration
	// DropOlderThan removes segments for good. A session's state stays; its
	// history then begins later.
	DropOlderThan *time.Duration
}

// Retained tells what retention has removed.
type Retained struct {
	Purged []eventlog.Purged `json:"purged"`
	// Dropped holds where the histories of sessions begin that lost segments.
	Dropped map[string]uint64 `json:"dropped"`
}

// Retain applies a retention to all sessions. It is repeated; the answer is
// then of the last try. While the server works, it is waited for as long as
// ctx allows.
func (c *Client) Retain(ctx context.Context, r Retention) (Retained, error) {
	body := map[string]string{}
	if r.PurgeOlderThan != nil {
		body["purgeOlderThan"] = r.PurgeOlderThan.String()
	}
	if r.DropOlderThan != nil {
		body["dropOlderThan"] = r.DropOlderThan.String()
	}
	k := post("retention", true, body)
	k.Idle = -1
	return fetch(ctx, c, k, func(r *Retained) bool { return r.Purged != nil })
}
