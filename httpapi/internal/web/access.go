package web

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
)

// Own returns an error if the caller is bound to a user or a tenant and the session
// belongs to another one. The error is eventlog.ErrSessionNotFound, so that the caller
// does not learn that the session exists; if the request may create the session, it is
// auth.ErrForbidden.
func (r *Request) Own(session string, creates bool) error {
	c := auth.CallerOf(r.Context())
	if !c.Bound() {
		return nil
	}
	t, err := r.states.Head(r.Context(), session)
	switch {
	case creates && errors.Is(err, eventlog.ErrSessionNotFound):
		return nil
	case unreadable(err): // the owner is unknown, and the answer must not reveal that it exists
		r.logger.ErrorContext(r.Context(), "session can't be read", eventlog.LogSession, session, "error", err)
	case err != nil:
		return err
	case c.MayUse(t):
		return nil
	}
	return notOwn(creates)
}

// notOwn is why a caller must not use a session of another one.
func notOwn(creates bool) error {
	if creates {
		return auth.ErrForbidden
	}
	return eventlog.ErrSessionNotFound
}

// unreadable reports whether an error means that a session exists but its state can
// never be read.
func unreadable(err error) bool {
	_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
	return trimmed || errors.Is(err, eventlog.ErrDamaged)
}

// Authorize checks that the caller may use a session that was not known when the request
// was admitted, such as one that the body names.
func (r *Request) Authorize(session string) error {
	return r.AuthorizeAs(session, r.Creates)
}

// AuthorizeAs is Authorize with an explicit answer to whether the request may create the
// session.
func (r *Request) AuthorizeAs(session string, creates bool) error {
	if session != "" && session == r.named && creates == r.Creates {
		return nil // it was before
	}
	r.Out.Session = session
	if err := r.Allow(r.Op, session); err != nil {
		return err
	}
	return r.Own(session, creates)
}

// Allow asks the current authenticator whether the caller may do an operation.
func (r *Request) Allow(op auth.Operation, session string) error {
	return r.settings.Load().allow(r.Request, op, session)
}

// Visible reports whether the caller may see a session in a listing.
func (r *Request) Visible(id string) (bool, error) {
	err := r.Allow(r.Op, id) // not what the request is about, which authorize notes
	if errors.Is(err, auth.ErrForbidden) || errors.Is(err, auth.ErrUnauthorized) {
		return false, nil
	}
	return err == nil, err
}

// User returns the user whose sessions a listing shows: the query's userId, else the
// user that the caller is bound to, else "" for all users.
func (r *Request) User() string {
	named, c := r.Query.Word("userId"), auth.CallerOf(r.Context())
	r.Query.Fail(c.CheckUser(named))
	return cmp.Or(named, c.OnlyUser())
}

// WhileAllowed returns a context that ends with parent, when the server closes, or when
// new settings no longer allow the caller the request's operation on the session.
func (r *Request) WhileAllowed(parent context.Context, session string) (context.Context, context.CancelFunc) {
	allowed, refuse := context.WithCancelCause(parent)
	ctx, cancel := r.UntilClosed(allowed)
	stop := r.watchSettings(session, refuse)
	return ctx, func() {
		stop()
		cancel()
		refuse(nil)
	}
}

// watchSettings calls refuse, at most once, when new settings no longer allow the caller
// the request's operation on the session. stop ends the watch.
func (r *Request) watchSettings(session string, refuse context.CancelCauseFunc) (stop func()) {
	var mu sync.Mutex
	var stopWatch func() bool // nil: the watch has ended
	ended := false
	var watch func(*settings)
	watch = func(of *settings) {
		mu.Lock()
		defer mu.Unlock()
		if ended {
			return
		}
		stopWatch = context.AfterFunc(of.replaced, func() {
			now := r.settings.Load()
			if err := now.allowAgain(r.Request, r.Op, session); err != nil {
				refuse(err)
				return
			}
			watch(now)
		})
	}
	watch(r.began)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		stopWatch()
	}
}
