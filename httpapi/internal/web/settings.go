package web

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/httpapi/auth"
)

// settings are the callers' rights. A reload replaces them while the server runs.
type settings struct {
	auth     auth.Authenticator
	identify auth.Identifier // nil: a middleware in front of the server identifies the caller

	replaced context.Context // ends when there are others
	replace  context.CancelFunc
}

// newSettings returns settings that allow everybody everything if authenticate is nil.
func newSettings(authenticate auth.Authenticator, identify auth.Identifier) *settings {
	if authenticate == nil {
		authenticate = everybody
	}
	s := &settings{auth: authenticate, identify: identify}
	s.replaced, s.replace = context.WithCancel(context.Background())
	return s
}

// everybody is the Authenticator of a server without one.
func everybody(*http.Request, auth.Operation, string) error { return nil }

// identified returns the request with its caller in its context. If the caller is not
// known, the context has the zero Caller.
func (s *settings) identified(r *http.Request) (*http.Request, error) {
	if s.identify == nil {
		return r, nil
	}
	c, err := s.identify(r)
	if err != nil {
		return r.WithContext(auth.WithCaller(r.Context(), auth.Caller{})), err
	}
	return r.WithContext(auth.WithCaller(r.Context(), c)), nil
}

// allow checks a request whose caller has been identified. Operations on all sessions
// are refused to callers that are bound to a user or a tenant.
func (s *settings) allow(r *http.Request, op auth.Operation, session string) error {
	if err := s.auth(r, op, session); err != nil {
		return err
	}
	if session == auth.AllSessions && auth.CallerOf(r.Context()).Bound() {
		return auth.ErrForbidden
	}
	return nil
}

// allowAgain checks a request that earlier settings admitted. Its caller must still be
// the same user of the same tenant.
func (s *settings) allowAgain(r *http.Request, op auth.Operation, session string) error {
	was := auth.CallerOf(r.Context())
	r, err := s.identified(r)
	if err != nil {
		return err
	}
	if now := auth.CallerOf(r.Context()); now.OnlyUser() != was.OnlyUser() || now.Tenant != was.Tenant {
		return auth.ErrForbidden
	}
	return s.allow(r, op, session)
}
