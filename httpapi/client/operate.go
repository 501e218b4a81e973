package client

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// Erase erases a session for good. It is repeated: if the answer to a first
// try was lost, there may be nothing left, which is NOT_FOUND.
func (c *Client) Erase(ctx context.Context, sessionID string) (api.Erased, error) {
	k := request{safe: true, Request: remotehttp.Request{Method: http.MethodDelete}}
	return fetch(ctx, c, k.of("sessions", sessionID), func(e *api.Erased) bool { return e.SessionID != "" })
}

// Sweep ends the sessions that have expired and still wait; with dryRun it only
// counts them. It is repeated; the answer is then of the last try. While the
// server works, it is waited for as long as ctx allows.
func (c *Client) Sweep(ctx context.Context, dryRun bool) (api.Swept, error) {
	k := post("sweep", true, map[string]bool{"dryRun": dryRun})
	k.Idle = -1
	type answer struct {
		*api.Swept
		Detected *int `json:"detected"` // which every answer has
	}
	a, err := fetch(ctx, c, k, func(a *answer) bool { return a.Detected != nil && a.Swept != nil })
	if err != nil {
		return api.Swept{}, err
	}
	a.Swept.Detected = *a.Detected
	return *a.Swept, nil
}

// Reload has the server read its agents and tokens again. A configuration that
// is not valid is an *Error of status 409, INVALID_CONFIG, and changes nothing.
// It is repeated.
func (c *Client) Reload(ctx context.Context) (api.Reloaded, error) {
	k := post("admin/reload", true, map[string]string{})
	k.Idle = -1
	return fetch(ctx, c, k, func(r *api.Reloaded) bool { return r.Agents != nil })
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

// Retain applies a retention to all sessions. It is repeated; the answer is
// then of the last try. While the server works, it is waited for as long as
// ctx allows.
func (c *Client) Retain(ctx context.Context, r Retention) (api.Retained, error) {
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
	return fetch(ctx, c, k, func(r *api.Retained) bool { return r.Purged != nil })
}
