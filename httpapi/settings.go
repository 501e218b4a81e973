package httpapi

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/readmodel"
)

// errAuthChange refuses a change that needs a new server.
var errAuthChange = errors.New("httpapi: authentication can't be turned on or off while the server runs")

// Reconfigure gives the server another authenticator and identifier and other
// options of the chat routes. Requests that have begun continue, but open streams end if
// their caller may no longer read them; the client learns why when it reconnects. It
// returns an error, and changes nothing, if that would turn authentication on or off, or
// if the default agent does not exist.
func (s *Server) Reconfigure(authenticate auth.Authenticator, identify auth.Identifier, options *chat.Options) error {
	if (authenticate != nil) != s.gate.Authenticated {
		return errAuthChange
	}
	if err := options.Check(s.opts.Loop); err != nil {
		return err
	}
	s.chat.Configure(options)
	s.gate.Reconfigure(authenticate, identify)
	return nil
}

// SetPrices replaces the prices of models, in USD. The caller must not change the map
// afterwards.
func (s *Server) SetPrices(all map[string]readmodel.Price) { s.prices.Set(all) }

// Guard serves a handler to callers who may do an operation on all sessions,
// such as those of package net/http/pprof after [auth.OpAdmin]. Others, and web
// pages of other origins, are refused as on the server's own routes.
func (s *Server) Guard(op auth.Operation, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = web.WithID(w, r)
		out := web.NewTracker(w, r)
		out.Route = "guarded"
		err := cmp.Or(s.checkHost(r), s.checkOrigin(r))
		if err == nil {
			r, err = s.gate.Guard(r, op)
			out.Request = r
		}
		if err != nil {
			s.gate.DropBody(out, r)
			s.fail(out, r, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}
