package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/projector/timeline"
)

// Timeline returns what happened when in a session's tree: what is new or has
// changed after from, 0 for all of it. A client with an earlier timeline merges the changes:
// spans by their id, marks by sequence and kind.
func (c *Client) Timeline(ctx context.Context, sessionID string, from uint64) (timeline.View, error) {
	q := url.Values{"from": {strconv.FormatUint(from, 10)}}
	return fetch(ctx, c, get("timeline", q).of("sessions", sessionID), func(v *timeline.View) bool { return v.SessionID != "" })
}
