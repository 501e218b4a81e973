package client

import (
	"context"
	"net/url"

	"github.com/helixd/helixd/projector"
)

// UsagePage is a page of what a session's tree has used, oldest first, with
// the sums of all of it.
type UsagePage struct {
	Page[projector.UsageEntry]
	Rollup projector.Rollup `json:"rollup"`
	// Floor is set if retention has removed the records up to it: there are no
	// entries then. The sums stay.
	Floor uint64 `json:"floor,omitempty"`
}

// Usage returns a page of what a session's tree has used.
func (c *Client) Usage(ctx context.Context, sessionID string, p Paging) (UsagePage, error) {
	return fetch(ctx, c, get("usage", p.to(url.Values{})).of("sessions", sessionID), func(u *UsagePage) bool { return u.Items != nil })
}
