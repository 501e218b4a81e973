package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/helixd/helixd/projector"
)

// OpActAs is the right to name any user in a request. No route asks for it, and
// no glob grants it: it counts only where a caller's operations list it by its
// name.
const OpActAs Operation = "act-as"

// Caller is the sender of a request, as far as its credentials say. The zero value
// is an unknown caller.
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

	known bool // it has shown credentials, which may name nobody
}

// Identifier returns the caller of a request. [ErrUnauthorized], wrapped or not,
// means that the credentials are not known; any other error, that the check
// failed. It must not read the body.
type Identifier func(*http.Request) (Caller, error)

type callerKey struct{}

// WithCaller returns a context that says who the caller is, for middleware in
// front of a server without [httpapi.Options].Identify.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of the request that a context belongs to, or the
// zero value.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Share names what shares the caller's part of what a node does at a time: its
// tenant, else its token, subject or user. Credentials that name none of them share
// one part, and callers without credentials another.
func (c Caller) Share() string {
	switch {
	case c.Tenant != "":
		return "tenant " + c.Tenant
	case c.Name != "":
		return "token " + c.Name
	case c.Subject != "":
		return "subject " + c.Subject
	case c.User != "":
		return "user " + c.User
	case c.known:
		return "unnamed"
	}
	return "nobody"
}

// OnlyUser returns the one user whose sessions and memories the caller reaches, or
// "" if it is not bound to a user.
func (c Caller) OnlyUser() string {
	if c.ActAs {
		return ""
	}
	return c.User
}

// OnlyTenant returns the one tenant whose sessions the caller reaches, or "" if it
// is not bound to a tenant.
func (c Caller) OnlyTenant() string {
	if c.ActAs {
		return ""
	}
	return c.Tenant
}

// Bound reports whether the caller reaches sessions of one user or tenant only.
func (c Caller) Bound() bool { return c.OnlyUser() != "" || c.OnlyTenant() != "" }

// CheckUser refuses a request that names another user than its caller's.
func (c Caller) CheckUser(named string) error {
	if only := c.OnlyUser(); only != "" && named != "" && named != only {
		return ErrOtherUser
	}
	return nil
}

// MayUse reports whether the caller may use a session in this state: one of its
// user and its tenant. A session without a tenant belongs to none.
func (c Caller) MayUse(t *projector.Tree) bool {
	user, tenant := c.OnlyUser(), c.OnlyTenant()
	return t.Head == 0 || (user == "" || t.UserID == user) && (tenant == "" || t.Tenant == tenant)
}

// AnyCaller identifies by the first of the identifiers that knows the request's
// credentials. If none does, an error of a failed check has precedence over
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
