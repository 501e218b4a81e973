package client

import (
	"context"
	"time"
)

// Ticket opens one session's stream by the query parameter ticket, for a web
// page's EventSource, which can't send a header.
type Ticket struct {
	Ticket string `json:"ticket"` // secret
	// ExpiresAt is when no stream can be opened with it any more.
	ExpiresAt time.Time `json:"expiresAt"`
}

// StreamTicket asks for a ticket for a session's /sse, /stream and /replay.
func (c *Client) StreamTicket(ctx context.Context, sessionID string) (Ticket, error) {
	return c.ticket(ctx, "sessions", sessionID)
}

// ChatTicket asks for a ticket for a session's chat stream.
func (c *Client) ChatTicket(ctx context.Context, sessionID string) (Ticket, error) {
	return c.ticket(ctx, "chat", sessionID)
}

func (c *Client) ticket(ctx context.Context, under, sessionID string) (Ticket, error) {
	return fetch(ctx, c, post("tickets", true, map[string]string{}).of(under, sessionID), func(t *Ticket) bool { return t.Ticket != "" })
}
