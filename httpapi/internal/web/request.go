package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
)

// Request is an admitted request: its caller may do the operation, on the session if that
// is known already.
type Request struct {
	*http.Request
	*Gate
	Op      auth.Operation
	Session string // valid; empty unless the path or the query names it
	Name    string // the value of {…} in the path
	Query   Query
	Out     *Tracker
	began   *settings // those by which it was let in
	Creates bool      // it may create its session
	named   string    // the session that the body names, once it is authorized
	Held    Holding   // what it holds of the bodies under way
	streams func()    // ends the stream that it has open; nil: it has none
}

// Segment returns a segment of the path, from 1.
func (r *Request) Segment(i int) string {
	all := strings.Split(r.URL.EscapedPath(), "/")
	if i >= len(all) {
		return ""
	}
	text, _ := url.PathUnescape(all[i]) // the router has checked it
	return text
}

// End releases the request's stream, its turn and its part of the budget.
func (r *Request) End() {
	r.Out.endTurn()
	r.LeaveBody()
	if r.streams != nil {
		r.streams()
	}
}

// startTimeout bounds the work that continues when its client leaves, as that of /start.
const startTimeout = 30 * time.Second

// Detached returns a context that does not end when the client leaves. Within it the loop uses the
// caller's sessions only: one that the caller was allowed may be another one's by then.
func (r *Request) Detached() (context.Context, context.CancelFunc) {
	ctx := engine.WithMayUse(context.WithoutCancel(r.Context()), func(t *projector.Tree) error {
		if auth.CallerOf(r.Context()).MayUse(t) {
			return nil
		}
		return notOwn(r.Creates)
	})
	return context.WithTimeout(ctx, startTimeout)
}

// Audit logs an act of the caller that no record of the session shows.
func (r *Request) Audit(message string) {
	r.logger.InfoContext(r.Context(), message, r.Out.Logged(ActorAttrs(r.Request)...)...)
}
