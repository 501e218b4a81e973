package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/helixd/helixd/httpapi/auth"
)

// settings are what a server may be given anew while it serves.
type settings struct {
	auth     auth.Authenticator
	identify auth.Identifier // nil: what is in front of the server says who calls
	chat     *ChatOptions    // nil: there is no chat

	replaced context.Context // ends when there are others
	replace  context.CancelFunc
}

// newSettings returns those of a server that takes everybody if authenticate is nil.
func newSettings(authenticate auth.Authenticator, identify auth.Identifier, chat *ChatOptions) *settings {
	if authenticate == nil {
		authenticate = everybody
	}
	s := &settings{auth: authenticate, identify: identify, chat: chat}
	s.replaced, s.replace = context.WithCancel(context.Background())
	return s
}

// everybody is the Authenticator of a server without one.
func everybody(*http.Request, auth.Operation, string) error { return nil }

// identified returns the request with its caller in its context. A request whose
// caller is not known has none there.
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

// allow decides about a request whose caller has been identified. What is about
// all sessions is not for callers that are bound to a user or a tenant.
func (s *settings) allow(r *http.Request, op auth.Operation, session string) error {
	if err := s.auth(r, op, session); err != nil {
		return err
	}
	if session == auth.AllSessions && auth.CallerOf(r.Context()).Bound() {
		return auth.ErrForbidden
	}
	return nil
}

// allowAgain decides about a request that these settings did not let in. Its
// caller must still be the same user of the same tenant.
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

// errAuthChange refuses what would need another server.
var errAuthChange = errors.New("httpapi: a server with authentication can't go on without, nor the other way round")

// Reconfigure gives the server another authenticator and identifier and other
// options of the chat routes, all at once. A request that has begun goes on, but for open
// streams whose caller may not hear them any more: those end, and the client is
// told why when it comes back. An error changes nothing: whether there is
// authentication stays as it was at [New], and the default agent is one that
// there is.
func (s *Server) Reconfigure(authenticate auth.Authenticator, identify auth.Identifier, chat *ChatOptions) error {
	if (authenticate != nil) != s.authenticated {
		return errAuthChange
	}
	if err := chat.check(s.loop); err != nil {
		return err
	}
	s.settings.Swap(newSettings(authenticate, identify, chat)).replace()
	return nil
}

// allow decides about a request by the settings of now.
func (s *Server) allow(r *http.Request, op auth.Operation, session string) error {
	return s.settings.Load().allow(r, op, session)
}

// chat are the options of the chat routes; where there is no chat, the zero
// value.
func (s *Server) chat() *ChatOptions {
	if o := s.settings.Load().chat; o != nil {
		return o
	}
	return &ChatOptions{}
}

func (s *Server) hasChat() bool { return s.settings.Load().chat != nil }

// whileAllowed returns a context that ends with parent, with the server, or when
// the caller may not do the request's operation on the session any more.
func (s *Server) whileAllowed(parent context.Context, r *request, session string) (context.Context, context.CancelFunc) {
	allowed, refuse := context.WithCancelCause(parent)
	ctx, cancel := s.streamContext(allowed)
	stop := s.watchSettings(r, session, refuse)
	return ctx, func() {
		stop()
		cancel()
		refuse(nil)
	}
}

// watchSettings calls refuse, at most once, when the caller may not do the
// request's operation on the session any more. stop ends the watch.
func (s *Server) watchSettings(r *request, session string, refuse context.CancelCauseFunc) (stop func()) {
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
			now := s.settings.Load()
			if err := now.allowAgain(r.Request, r.op, session); err != nil {
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

// Guard serves a handler to callers who may do an operation on all sessions,
// such as those of package net/http/pprof behind [auth.OpAdmin]. Others, and web
// pages of other origins, are refused as on the server's own routes.
func (s *Server) Guard(op auth.Operation, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = identified(w, r)
		out := &tracker{ResponseWriter: w, route: "guarded", request: r}
		err := cmp.Or(s.checkHost(r), s.checkOrigin(r))
		if err == nil {
			r, err = s.settings.Load().identified(r)
			out.request = r
		}
		if err == nil {
			err = s.allow(r, op, auth.AllSessions)
		}
		if err != nil {
			s.dropBody(out, r)
			s.fail(out, r, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}
