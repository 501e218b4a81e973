package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// OpActAs is the right to name any user in a request. No route asks for it, and
// no glob grants it: it counts only where a caller's operations list it by its
// name.
const OpActAs Operation = "act-as"

// Caller is who sends a request, as far as its credentials say. The zero value
// is a caller of whom nothing is known.
type Caller struct {
	Name    string // the token's name in the configuration; not a secret
	Subject string // the claim sub of a JWT
	// User is the user on whose behalf the caller acts, at most 256 bytes. A
	// caller with a user reaches only this user's sessions and memories, unless
	// ActAs.
	User string
	// Tenant is the team or customer that the caller belongs to, at most 256
	// bytes. A caller with a tenant reaches only this tenant's sessions, unless
	// ActAs.
	Tenant  string
	ActAs   bool      // it may name any user, and reach all sessions that the [Authenticator] lets it
	Expires time.Time // when its credentials are not accepted any more, and its streams end; zero: never
}

// Identifier returns the caller of a request. [ErrUnauthorized], wrapped or not,
// means that the credentials are not known; any other error, that nobody could
// tell. It must not read the body.
type Identifier func(*http.Request) (Caller, error)

type callerKey struct{}

// WithCaller returns a context that says who the caller is, for middleware in
// front of a server without [Options].Identify.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of the request that a context belongs to, or the
// zero value.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// share names what shares the caller's part of what a node does at a time: its
// tenant, else its token, subject or user.
func (c Caller) share() string {
	if c.Tenant != "" {
		return "tenant " + c.Tenant
	}
	return "caller " + cmp.Or(c.Name, c.Subject, c.User)
}

// only returns the one user whose sessions and memories the caller reaches, or
// "" if it is not bound to a user.
func (c Caller) only() string {
	if c.ActAs {
		return ""
	}
	return c.User
}

// onlyTenant returns the one tenant whose sessions the caller reaches, or "" if it
// is not bound to a tenant.
func (c Caller) onlyTenant() string {
	if c.ActAs {
		return ""
	}
	return c.Tenant
}

// bound reports whether the caller reaches sessions of one user or tenant only.
func (c Caller) bound() bool { return c.only() != "" || c.onlyTenant() != "" }

// checkUser refuses a request that names another user than its caller's.
func (c Caller) checkUser(named string) error {
	if only := c.only(); only != "" && named != "" && named != only {
		return errOtherUser
	}
	return nil
}

// mayUse reports whether the caller may use a session in this state: one of its
// user and its tenant. A session without a tenant belongs to none.
func (c Caller) mayUse(t *projector.Tree) bool {
	user, tenant := c.only(), c.onlyTenant()
	return t.Head == 0 || (user == "" || t.UserID == user) && (tenant == "" || t.Tenant == tenant)
}

// AnyCaller identifies by the first of the identifiers that knows the request's
// credentials. If none does, the failure of one that could not tell comes before
// [ErrUnauthorized].
func AnyCaller(all ...Identifier) Identifier {
	all = slices.Clone(all)
	return func(r *http.Request) (Caller, error) {
		var failed, unknown error // the first of each
		for _, identify := range all {
			c, err := identify(r)
			switch {
			case err == nil:
				return c, nil
			case errors.Is(err, ErrUnauthorized):
				unknown = cmp.Or(unknown, err)
			default:
				failed = cmp.Or(failed, err)
			}
		}
		return Caller{}, cmp.Or(failed, unknown, ErrUnauthorized)
	}
}

// identified returns the request with its caller in its context. A request whose
// caller is not known has none there.
func (s *settings) identified(r *http.Request) (*http.Request, error) {
	if s.identify == nil {
		return r, nil
	}
	c, err := s.identify(r)
	if err != nil {
		return r.WithContext(WithCaller(r.Context(), Caller{})), err
	}
	return r.WithContext(WithCaller(r.Context(), c)), nil
}

// allow decides about a request whose caller has been identified. What is about
// all sessions is not for callers that are bound to a user or a tenant.
func (s *settings) allow(r *http.Request, op Operation, session string) error {
	if err := s.auth(r, op, session); err != nil {
		return err
	}
	if session == allSessions && CallerOf(r.Context()).bound() {
		return ErrForbidden
	}
	return nil
}

// allowAgain decides about a request that these settings did not let in. Its
// caller must still be the same user of the same tenant.
func (s *settings) allowAgain(r *http.Request, op Operation, session string) error {
	was := CallerOf(r.Context())
	r, err := s.identified(r)
	if err != nil {
		return err
	}
	if now := CallerOf(r.Context()); now.only() != was.only() || now.Tenant != was.Tenant {
		return ErrForbidden
	}
	return s.allow(r, op, session)
}

// own refuses a session of another user or tenant to a caller that is bound to its
// own: as a session that does not exist or, if the request may create it, as not
// allowed.
func (s *Server) own(r *request, session string, creates bool) error {
	c := CallerOf(r.Context())
	if !c.bound() {
		return nil
	}
	t, err := s.states.Head(r.Context(), session)
	switch {
	case creates && errors.Is(err, eventlog.ErrSessionNotFound):
		return nil
	case unreadable(err): // nobody knows whose it is, and the answer must not tell that it is there
		s.logger.ErrorContext(r.Context(), "session can't be read", eventlog.LogSession, session, "error", err)
	case err != nil:
		return err
	case c.mayUse(t):
		return nil
	}
	if creates {
		return ErrForbidden
	}
	return eventlog.ErrSessionNotFound
}

// unreadable reports whether an error says that a session is there, and that its
// state can't be read, now or later.
func unreadable(err error) bool {
	_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
	return trimmed || errors.Is(err, eventlog.ErrDamaged)
}
