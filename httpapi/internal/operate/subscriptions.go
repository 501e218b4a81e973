package operate

import (
	"fmt"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Subscribe answers POST /sessions/{id}/subscriptions {ttl?}. Its operation is that of
// /records, since a subscriber receives all records, facts too.
func (s *Routes) Subscribe(w http.ResponseWriter, r *web.Request) error {
	if s.Grant == nil {
		return ErrNoSubscribers
	}
	body, err := r.ReadOptObject(w)
	if err != nil {
		return err
	}
	given, ttl := body.Duration("ttl") // 0: the server's own
	if given && (ttl < api.MinSubscription || ttl > api.MaxSubscription) {
		body.Fail("ttl", "must be from 1s to 24h")
	}
	if *body.Err != nil {
		return *body.Err
	}
	if _, err := s.Log.Head(r.Context(), r.Session); err != nil {
		return err
	}
	sub, err := s.Grant(r.Context(), r.Session, ttl)
	expires := auth.CallerOf(r.Context()).Expires
	if err == nil && !expires.IsZero() && sub.ExpiresAt.After(expires) { // it lasts no longer than its caller's token
		left := time.Until(expires).Truncate(time.Second)
		if left < api.MinSubscription {
			return web.ErrTokenExpired
		}
		sub, err = s.Grant(r.Context(), r.Session, left)
	}
	if err != nil {
		return fmt.Errorf("httpapi: subscribe: %w", err)
	}
	// An erasure revokes the rights that were made before it, not this one if it
	// was made afterwards: that would be a right to the next session of the id.
	if _, err := s.Log.Head(r.Context(), r.Session); err != nil {
		return err
	}
	if err := r.Own(r.Session, false); err != nil {
		return err
	}
	sub.URLs.NATS, sub.URLs.WebSocket = append([]string{}, sub.URLs.NATS...), append([]string{}, sub.URLs.WebSocket...)
	return r.Respond(w, http.StatusCreated, sub)
}

// Unsubscribe answers DELETE /sessions/{id}/subscriptions: it revokes the rights that
// Subscribe made for the session.
func (s *Routes) Unsubscribe(w http.ResponseWriter, r *web.Request) error {
	switch {
	case s.Grant == nil:
		return ErrNoSubscribers
	case s.Revoke == nil:
		return ErrNoRevocation
	}
	if _, err := s.Log.Head(r.Context(), r.Session); err != nil {
		return err
	}
	if err := s.Revoke(r.Context(), r.Session); err != nil {
		return fmt.Errorf("httpapi: unsubscribe: %w", err)
	}
	r.Audit("subscriptions revoked")
	return r.Respond(w, http.StatusOK, api.Unsubscribed{SessionID: r.Session, Revoked: true})
}
