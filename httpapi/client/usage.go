package client

import (
	"context"
	"net/url"

	"github.com/helixd/helixd/httpapi/api"
)

// Usage returns a page of what a session's tree has used.
func (c *Client) Usage(ctx context.Context, sessionID string, p Paging) (api.UsagePage, error) {
	return fetch(ctx, c, get("usage", p.to(url.Values{})).of("sessions", sessionID), func(u *api.UsagePage) bool { return u.Items != nil })
}
