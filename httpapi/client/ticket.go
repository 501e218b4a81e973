package client

import (
	"context"

	"github.com/helixd/helixd/httpapi/api"
)

// StreamTicket asks for a ticket for a session's /sse, /stream and /replay.
func (c *Client) StreamTicket(ctx context.Context, sessionID string) (api.Ticket, error) {
	return c.ticket(ctx, "sessions", sessionID)
}

// ChatTicket asks for a ticket for a session's chat stream.
func (c *Client) ChatTicket(ctx context.Context, sessionID string) (api.Ticket, error) {
	return c.ticket(ctx, "chat", sessionID)
}

func (c *Client) ticket(ctx context.Context, under, sessionID string) (api.Ticket, error) {
	return fetch(ctx, c, post("tickets", true, map[string]string{}).of(under, sessionID), func(t *api.Ticket) bool { return t.Ticket != "" })
}
