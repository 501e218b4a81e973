package web

import (
	"context"
	"fmt"

	"github.com/helixd/helixd/httpapi/auth"
)

// ErrTokenExpired ends a stream whose caller's credentials have expired.
var ErrTokenExpired = fmt.Errorf("%w: the token has expired", auth.ErrUnauthorized)

// UntilClosed returns a context that ends with parent or with the server.
func (g *Gate) UntilClosed(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })
	if g.ctx.Err() != nil {
		cancel(context.Cause(g.ctx))
	}
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Streaming calls f, which answers with a stream. f's context ends when the client leaves,
// when the server closes, when the caller may no longer read the session, or when its
// credentials expire. If the context ends before the stream begins, its cause is the error.
// The error is a *quota.Exceeded if the caller has too many streams open.
func (r *Request) Streaming(session string, f func(ctx context.Context) error) error {
	valid := r.Context()
	if expires := auth.CallerOf(valid).Expires; !expires.IsZero() {
		var expire context.CancelFunc
		valid, expire = context.WithDeadlineCause(valid, expires, ErrTokenExpired)
		defer expire()
	}
	ctx, cancel := r.WhileAllowed(valid, session)
	defer cancel()
	err := context.Cause(ctx)
	if err == nil {
		err = r.OpenStream()
	}
	if err == nil {
		err = f(ctx)
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// OpenStream counts the stream that a request opens, or returns *quota.Exceeded. A second
// call for the same request does nothing.
func (r *Request) OpenStream() error {
	if r.streams != nil {
		return nil
	}
	done, err := r.admission.stream(r.Request)
	if err != nil {
		return err
	}
	tenant := r.quota.Label(auth.CallerOf(r.Context()).Tenant)
	r.meter.TenantStreams(tenant, 1)
	r.streams = func() {
		r.meter.TenantStreams(tenant, -1)
		done()
	}
	return nil
}
