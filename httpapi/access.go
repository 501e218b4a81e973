package httpapi

import (
	"errors"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/auth"
)

// own refuses a session of another user or tenant to a caller that is bound to its
// own: as a session that does not exist or, if the request may create it, as not
// allowed.
func (s *Server) own(r *request, session string, creates bool) error {
	c := auth.CallerOf(r.Context())
	if !c.Bound() {
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
	case c.MayUse(t):
		return nil
	}
	if creates {
		return auth.ErrForbidden
	}
	return eventlog.ErrSessionNotFound
}

// unreadable reports whether an error says that a session is there, and that its
// state can't be read, now or later.
func unreadable(err error) bool {
	_, trimmed := errors.AsType[*eventlog.TrimmedError](err)
	return trimmed || errors.Is(err, eventlog.ErrDamaged)
}
