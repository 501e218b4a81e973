package httpapi

import (
	"fmt"
	"net/http"
	"time"
)

// How long a [Subscription] may last.
const (
	MinSubscription = time.Second
	MaxSubscription = 24 * time.Hour
)

// Subscription is the right of a NATS client to hear one session's records
// while they are stored, and to do nothing else. It is the answer of
// POST /sessions/{id}/subscriptions.
type Subscription struct {
	Subject string           `json:"subject"` // the only one that it may subscribe to
	URLs    SubscriptionURLs `json:"urls"`
	JWT     string           `json:"jwt"`
	Seed    string           `json:"seed"`  // secret: it signs what the server asks of who has the JWT
	Creds   string           `json:"creds"` // JWT and Seed, as the text of a .creds file
	// ExpiresAt is when connections end and no others are taken.
	ExpiresAt time.Time `json:"expiresAt"`
}

// SubscriptionURLs are where NATS clients connect, as far as it is known.
type SubscriptionURLs struct {
	NATS      []string `json:"nats"`
	WebSocket []string `json:"websocket"`
}

// subscribe answers POST /sessions/{id}/subscriptions {ttl?}. Its operation is
// that of /records: what is heard are all records, facts too.
func (s *Server) subscribe(w http.ResponseWriter, r *request) error {
	if s.opts.Subscribe == nil {
		return errNoSubscribers
	}
	raw, err := readBody(w, r, MaxBody, bodyTimeout)
	if err != nil {
		return err
	}
	var ttl time.Duration // the server's own
	if len(raw) > 0 {
		body, err := parseObject(raw)
		if err != nil {
			return err
		}
		given, d := body.duration("ttl")
		if given && (d < MinSubscription || d > MaxSubscription) {
			body.fail("ttl", "must be from 1s to 24h")
		}
		if *body.err != nil {
			return *body.err
		}
		ttl = d
	}
	if _, err := s.log.Head(r.Context(), r.session); err != nil {
		return err
	}
	sub, err := s.opts.Subscribe(r.Context(), r.session, ttl)
	expires := CallerOf(r.Context()).Expires
	if err == nil && !expires.IsZero() && sub.ExpiresAt.After(expires) { // it lasts no longer than its caller's token
		left := time.Until(expires).Truncate(time.Second)
		if left < MinSubscription {
			return errTokenExpired
		}
		sub, err = s.opts.Subscribe(r.Context(), r.session, left)
	}
	if err != nil {
		return fmt.Errorf("httpapi: subscribe: %w", err)
	}
	// An erasure revokes the rights that were made before it, not this one if it
	// was made afterwards: that would be a right to the next session of the id.
	if _, err := s.log.Head(r.Context(), r.session); err != nil {
		return err
	}
	if err := s.own(r, r.session, false); err != nil {
		return err
	}
	sub.URLs.NATS, sub.URLs.WebSocket = append([]string{}, sub.URLs.NATS...), append([]string{}, sub.URLs.WebSocket...)
	return s.respond(w, http.StatusCreated, sub)
}

// Unsubscribed is the answer of DELETE /sessions/{id}/subscriptions.
type Unsubscribed struct {
	SessionID string `json:"sessionId"`
	Revoked   bool   `json:"revoked"` // true: no right that was made before holds any more
}

// unsubscribe answers DELETE /sessions/{id}/subscriptions: it revokes the rights
// that subscribe made for the session.
func (s *Server) unsubscribe(w http.ResponseWriter, r *request) error {
	switch {
	case s.opts.Subscribe == nil:
		return errNoSubscribers
	case s.opts.Unsubscribe == nil:
		return errNoRevocation
	}
	if _, err := s.log.Head(r.Context(), r.session); err != nil {
		return err
	}
	if err := s.opts.Unsubscribe(r.Context(), r.session); err != nil {
		return fmt.Errorf("httpapi: unsubscribe: %w", err)
	}
	s.audit(r, "subscriptions revoked")
	return s.respond(w, http.StatusOK, Unsubscribed{SessionID: r.session, Revoked: true})
}
