package client

import (
	"context"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// Moment is a session at a sequence.
type Moment struct {
	SessionID string
	At        *uint64 // nil: the head
}

// Compare returns two moments beside each other.
func (c *Client) Compare(ctx context.Context, a, b Moment) (api.Comparison, error) {
	q := url.Values{"a": {a.SessionID}, "b": {b.SessionID}}
	for name, at := range map[string]*uint64{"aAt": a.At, "bAt": b.At} {
		if at != nil {
			q.Set(name, strconv.FormatUint(*at, 10))
		}
	}
	k := get("compare", q)
	for _, m := range []Moment{a, b} {
		if err := eventlog.ValidateSessionID(m.SessionID); err != nil {
			k.err = err
		}
	}
	return fetch(ctx, c, k, func(c *api.Comparison) bool { return c.Patch != nil })
}
