package client

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/httpapi/api"
)

// Health returns nil if the server's process serves.
func (c *Client) Health(ctx context.Context) error {
	_, err := fetch(ctx, c, get("healthz", nil), func(h *struct{ OK bool }) bool { return h.OK })
	return err
}

// Ready returns whether the server takes work. That it does not is an answer,
// and no error.
func (c *Client) Ready(ctx context.Context) (api.Readiness, error) {
	k := get("readyz", nil)
	k.also = http.StatusServiceUnavailable
	return fetch(ctx, c, k, func(r *api.Readiness) bool { return r.Backend != "" })
}
