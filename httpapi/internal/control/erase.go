package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector/readmodel"
)

// defaultEraseTimeout is how long DELETE /sessions/{id} works before it answers that there
// is more to do, or that it could not begin.
const defaultEraseTimeout = 20 * time.Second

// Erase answers DELETE /sessions/{id}.
func (s *Routes) Erase(w http.ResponseWriter, r *web.Request) error {
	forks := s.forks(r)
	e, err := s.untilErased(r, func(ctx context.Context) (eventlog.Erasure, error) {
		if c := auth.CallerOf(ctx); c.Bound() { // the next session of the id may be another user's
			t, err := s.states.Head(ctx, r.Session)
			if err == nil && !c.MayUse(t) {
				err = eventlog.ErrSessionNotFound
			}
			if err != nil {
				return eventlog.Erasure{}, err
			}
			ctx = eventlog.WithHead(ctx, r.Session, t.Head)
		}
		return s.loop.Admin.Erase(ctx, r.Session)
	})
	if err != nil {
		return err
	}
	r.Audit("session erased")
	status := http.StatusOK
	if e.Pending {
		status = http.StatusAccepted
	}
	return r.Respond(w, status, api.Erased{
		SessionID: r.Session, Pending: e.Pending, WaitsFor: e.WaitsFor, Left: e.Left, Forks: forks,
	})
}

// forks returns the forks of the session that the read models have and the caller may erase
// as well, at most readmodel.MaxPage. An erasure does not fail for want of them.
func (s *Routes) forks(r *web.Request) []string {
	ids := []string{}
	if s.models == nil {
		return ids
	}
	found, err := web.Ask(r, func(visible readmodel.Visible) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
		caller := auth.CallerOf(r.Context()) // a session of the same id may have had another owner, and forks
		f := readmodel.SessionFilter{
			ForkedFrom: r.Session, UserID: caller.OnlyUser(), Tenant: caller.OnlyTenant(), Visible: visible,
			Paging: readmodel.Paging{Limit: readmodel.MaxPage},
		}
		return s.models.Sessions(r.Context(), f)
	})
	if err != nil {
		s.logger.WarnContext(r.Context(), "the forks of a session that is to be erased are not known", "session", r.Session, "error", err)
	}
	for _, fork := range found.Value.Items {
		ids = append(ids, fork.SessionID)
	}
	return ids
}

// untilErased erases until eraseTimeout. A client that leaves does not stop it halfway.
func (s *Routes) untilErased(r *web.Request, erase func(context.Context) (eventlog.Erasure, error)) (eventlog.Erasure, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.EraseTimeout)
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
