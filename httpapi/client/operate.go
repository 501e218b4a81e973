package client

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/eventlog"
)

// Erased tells what an erasure has done. Pending means that bytes may be left:
// the session is not found any more, and the nodes go on by themselves. Another
// Erase returns how far they are, or finds nothing (NOT_FOUND): then what is left are
// files that another node removes.
type Erased struct {
	SessionID string   `json:"sessionId"`
	Pending   bool     `json:"pending"`
	WaitsFor  string   `json:"waitsFor,omitempty"` // while it is pending, and goes by itself
	Left      string   `json:"left,omitempty"`     // what stays while it is pending, and what an operator must do
	Forks     []string `json:"forks"`              // sessions that were forked from it and keep what they took
}

// Erase erases a session for good. It is repeated: if the answer to a first
// try was lost, there may be nothing left, which is NOT_FOUND.
func (c *Client) Erase(ctx context.Context, sessionID string) (Erased, error) {
	k := call{safe: true, Request: remote.Request{Method: http.MethodDelete}}
	return fetch(ctx, c, k.of("sessions", sessionID), func(e *Erased) bool { return e.SessionID != "" })
}

// Swept tells what a sweep has done.
type Swept struct {
	Detected         int `json:"detected"`         // sessions that have expired
	Marked           int `json:"marked"`           // that have failed now, with session_expired
	AlreadyTerminal  int `json:"alreadyTerminal"`  // that had ended before
	SnapshotsDeleted int `json:"snapshotsDeleted"` // of workspaces
	Errors           int `json:"errors"`           // sessions that could not be swept; the server's log says more
	Running          int `json:"running"`          // that are left alone, since something of them runs
}

// Sweep ends the sessions that have expired and still wait; with dryRun it only
// counts them. It is repeated; the answer is then of the last try. While the
// server works, it is waited for as long as ctx allows.
func (c *Client) Sweep(ctx context.Context, dryRun bool) (Swept, error) {
	k := post("sweep", true, map[string]bool{"dryRun": dryRun})
	k.Idle = -1
	type answer struct {
		*Swept
		Detected *int `json:"detected"` // which every answer has
	}
	a, err := fetch(ctx, c, k, func(a *answer) bool { return a.Detected != nil && a.Swept != nil })
	if err != nil {
		return Swept{}, err
	}
	a.Swept.Detected = *a.Detected
	return *a.Swept, nil
}

// Reloaded is what a reload has changed.
type Reloaded struct {
	Agents []string `json:"agents"` // that there are now, sorted
	// NeedsRestart are keys that only a start of the server takes over.
	NeedsRestart []string `json:"needsRestart"`
}

// Reload has the server read its agents and tokens anew. A configuration that
// is not valid is an *Error of status 409, INVALID_CONFIG, and changes nothing.
// It is repeated.
func (c *Client) Reload(ctx context.Context) (Reloaded, error) {
	k := post("admin/reload", true, map[string]string{})
	k.Idle = -1
	return fetch(ctx, c, k, func(r *Reloaded) bool { return r.Agents != nil })
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
	// MaxBytes removes what is oldest until the log and its segments hold no
	// more, or nothing is left that may go. Large payloads don't count.
	MaxBytes *uint64
}

// Retained tells what retention has removed.
type Retained struct {
	Purged []eventlog.Purged `json:"purged"`
	// Dropped holds where the histories of sessions begin that lost segments.
	Dropped map[string]uint64 `json:"dropped"`
	// Bytes is what the log and its segments hold now.
	Bytes uint64 `json:"bytes"`
}

// Retain applies a retention to all sessions. It is repeated; the answer is
// then of the last try. While the server works, it is waited for as long as
// ctx allows.
func (c *Client) Retain(ctx context.Context, r Retention) (Retained, error) {
	body := map[string]any{}
	if r.MaxBytes != nil {
		body["maxBytes"] = *r.MaxBytes
	}
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
