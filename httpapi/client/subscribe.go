package client

import (
	"context"
	"time"
)

// Subscription is the right of a NATS client to hear one session's records
// while they are stored.
type Subscription struct {
	Subject string           `json:"subject"` // the only one that it may subscribe to
	URLs    SubscriptionURLs `json:"urls"`
	JWT     string           `json:"jwt"`
	Seed    string           `json:"seed"`  // secret
	Creds   string           `json:"creds"` // secret: JWT and Seed, as the text of a .creds file
	// ExpiresAt is when connections end and no others are taken.
	ExpiresAt time.Time `json:"expiresAt"`
}

// SubscriptionURLs are where NATS clients connect, as far as the server knows.
type SubscriptionURLs struct {
	NATS      []string `json:"nats"`
	WebSocket []string `json:"websocket"`
}

// Subscribe asks for a right to hear a session by NATS. It lasts from a second
// to a day; ttl 0 leaves that to the server. Where there are no such rights
// the error is NOT_IMPLEMENTED.
func (c *Client) Subscribe(ctx context.Context, sessionID string, ttl time.Duration) (Subscription, error) {
	body := map[string]string{}
	if ttl != 0 {
		body["ttl"] = ttl.String()
	}
	return fetch(ctx, c, post("subscriptions", true, body).of("sessions", sessionID), func(s *Subscription) bool { return s.Subject != "" })
}
