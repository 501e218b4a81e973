package client

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// Subscribe asks for a right to receive a session's records over NATS. It lasts from a second
// to a day; ttl 0 leaves that to the server. Where there are no such rights
// the error is NOT_IMPLEMENTED.
func (c *Client) Subscribe(ctx context.Context, sessionID string, ttl time.Duration) (api.Subscription, error) {
	body := map[string]string{}
	if ttl != 0 {
		body["ttl"] = ttl.String()
	}
	return fetch(ctx, c, post("subscriptions", true, body).of("sessions", sessionID), func(s *api.Subscription) bool { return s.Subject != "" })
}

// Unsubscribe revokes all earlier rights to receive a session's records over NATS.
// If the server can't, the error is NOT_IMPLEMENTED and names the service that can.
func (c *Client) Unsubscribe(ctx context.Context, sessionID string) error {
	type answer struct {
		Revoked bool `json:"revoked"`
	}
	k := request{safe: true, Request: remotehttp.Request{Method: http.MethodDelete, Route: "subscriptions"}}
	_, err := fetch(ctx, c, k.of("sessions", sessionID), func(a *answer) bool { return a.Revoked })
	return err
}
