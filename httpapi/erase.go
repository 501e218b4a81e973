package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
)

// defaultEraseTimeout is how long DELETE /sessions/{id} works before it answers that
// there is more to do, or that it could not begin.
const defaultEraseTimeout = 20 * time.Second

func (s *controlRoutes) erase(w http.ResponseWriter, r *request) error {
	e, err := s.untilErased(r, func(ctx context.Context) (eventlog.Erasure, error) { return s.loop.Erase(ctx, r.session) })
	if err != nil {
		return err
	}
	r.audit("session erased")
	status := http.StatusOK
	if e.Pending {
		status = http.StatusAccepted
	}
	return r.respond(w, status, api.Erased{
		SessionID: r.session, Pending: e.Pending, WaitsFor: e.WaitsFor, Left: e.Left, Forks: []string{},
	})
}

// untilErased erases, for as long as an answer may take: the client's end does
// not leave it half done.
func (s *controlRoutes) untilErased(r *request, erase func(context.Context) (eventlog.Erasure, error)) (eventlog.Erasure, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.eraseTimeout)
	defer cancel()
	e, err := erase(ctx)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		if e.Pending { // it has begun, for good
			err = nil
		} else {
			err = fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, err)
		}
	}
	return e, err
}
