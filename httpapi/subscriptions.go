package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
)

// subscribe answers POST /sessions/{id}/subscriptions {ttl?}. Its operation is
// that of /records: what is heard are all records, facts too.
func (s *operateRoutes) subscribe(w http.ResponseWriter, r *request) error {
	if s.granting == nil {
		return errNoSubscribers
	}
	raw, err := r.readBody(w, api.MaxBody, defaultBodyTimeout)
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
		if given && (d < api.MinSubscription || d > api.MaxSubscription) {
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
	sub, err := s.granting(r.Context(), r.session, ttl)
	expires := auth.CallerOf(r.Context()).Expires
	if err == nil && !expires.IsZero() && sub.ExpiresAt.After(expires) { // it lasts no longer than its caller's token
		left := time.Until(expires).Truncate(time.Second)
		if left < api.MinSubscription {
			return errTokenExpired
		}
		sub, err = s.granting(r.Context(), r.session, left)
	}
	if err != nil {
		return fmt.Errorf("httpapi: subscribe: %w", err)
	}
	// An erasure revokes the rights that were made before it, not this one if it
	// was made afterwards: that would be a right to the next session of the id.
	if _, err := s.log.Head(r.Context(), r.session); err != nil {
		return err
	}
	if err := r.own(r.session, false); err != nil {
		return err
	}
	sub.URLs.NATS, sub.URLs.WebSocket = append([]string{}, sub.URLs.NATS...), append([]string{}, sub.URLs.WebSocket...)
	return r.respond(w, http.StatusCreated, sub)
}

// unsubscribe answers DELETE /sessions/{id}/subscriptions: it revokes the rights
// that subscribe made for the session.
func (s *operateRoutes) unsubscribe(w http.ResponseWriter, r *request) error {
	switch {
	case s.granting == nil:
		return errNoSubscribers
	case s.revoking == nil:
		return errNoRevocation
	}
	if _, err := s.log.Head(r.Context(), r.session); err != nil {
		return err
	}
	if err := s.revoking(r.Context(), r.session); err != nil {
		return fmt.Errorf("httpapi: unsubscribe: %w", err)
	}
	r.audit("subscriptions revoked")
	return r.respond(w, http.StatusOK, api.Unsubscribed{SessionID: r.session, Revoked: true})
}
