package client

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/readmodel"
)

// Health returns nil if the server's process serves.
func (c *Client) Health(ctx context.Context) error {
	_, err := fetch(ctx, c, get("healthz", nil), func(h *struct{ OK bool }) bool { return h.OK })
	return err
}

// Readiness tells whether the server takes work, and what it promises.
type Readiness struct {
	Ready      bool                `json:"ready"`
	Durability eventlog.Durability `json:"durability"`
	Guarantee  string              `json:"guarantee"`          // what that means, in words
	Refuses    string              `json:"refuses,omitempty"`  // why the log takes no appends now
	Draining   bool                `json:"draining,omitempty"` // the server is going to stop, and still serves
	Backend    string              `json:"backend"`
	Partitions int                 `json:"partitions"`
	Agents     []string            `json:"agents"`
	Version    string              `json:"version"`
	// Replicas says which servers keep the log, if it is replicated and has a
	// quorum.
	Replicas *eventlog.Replicas `json:"replicas,omitempty"`
	// ReadModels tells how near to the log's end listings are; nil: there are
	// no read models. It does not count for Ready.
	ReadModels *readmodel.Fresh `json:"readModels,omitempty"`
}

// Ready returns whether the server takes work. That it does not is an answer,
// and no error.
func (c *Client) Ready(ctx context.Context) (Readiness, error) {
	k := get("readyz", nil)
	k.also = http.StatusServiceUnavailable
	return fetch(ctx, c, k, func(r *Readiness) bool { return r.Backend != "" })
}
