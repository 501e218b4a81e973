package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/httpapi/auth"
)

// request is a request whose caller may do the operation, on the session if
// that is known yet.
type request struct {
	*http.Request
	*gate
	op      auth.Operation
	session string // valid; empty unless the path or the query names it
	name    string // what stands for {…} in the path
	query   query
	out     *tracker
	began   *settings // those by which it was let in
	creates bool      // it may create its session
	named   string    // the session that the body names, once it is authorized
	body    holding   // what it holds of the bodies under way
	streams func()    // ends the stream that it has open; nil: it has none
}

// end ends what the request holds.
func (r *request) end() {
	r.leaveBody()
	if r.streams != nil {
		r.streams()
	}
}

// startTimeout bounds what outlives its client: /start, /resume and all
// else that changes a session.
const startTimeout = 30 * time.Second

// detached returns a context for what a client that leaves does not stop.
func (r *request) detached() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), startTimeout)
}

// audit logs what a caller has done that no record of the session says.
func (r *request) audit(message string) {
	r.logger.InfoContext(r.Context(), message, r.out.logged(actorAttrs(r.Request)...)...)
}
