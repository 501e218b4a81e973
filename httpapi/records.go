package httpapi

import (
	"iter"
	"math"
	"net/http"

	"github.com/helixd/helixd/eventlog"
)

// records answers GET /sessions/{id}/records: the records with from <
// sequence <= to as NDJSON, facts included. Those that markers up to to have
// struck are left out unless dead=1.
func (s *Server) records(w http.ResponseWriter, r *request) error {
	all, limit, err := s.selected(r)
	if err != nil {
		return err
	}
	rc := http.NewResponseController(w)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/x-ndjson")
	n := 0
	for rec, err := range all {
		if err != nil {
			return err // before the first record an error answer, behind it an abort
		}
		if n == limit || r.Method == http.MethodHead {
			break
		}
		n++
		line, err := marshal(rec)
		if err != nil {
			return err
		}
		if err := s.write(w, rc, append(line, '\n')); err != nil {
			panic(http.ErrAbortHandler) // the client has left
		}
	}
	s.extendDeadline(rc)
	return nil
}

// selected returns the records that a request asks for.
func (s *Server) selected(r *request) (all iter.Seq2[eventlog.Record, error], limit int, err error) {
	from, _, err := r.query.number("from")
	if err != nil {
		return nil, 0, err
	}
	to, bounded, err := r.query.number("to")
	if err != nil {
		return nil, 0, err
	}
	if limit, err = r.query.integer("limit", math.MaxInt, 1, math.MaxInt); err != nil {
		return nil, 0, err
	}
	dead, err := r.query.flag("dead")
	if err != nil {
		return nil, 0, err
	}
	head, err := s.log.Head(r.Context(), r.session)
	switch {
	case err != nil:
		return nil, 0, err
	case !bounded:
		to = head // now, so that the markers that count are those up to here
	}
	switch {
	case max(from, to) > head:
		return nil, 0, &eventlog.CursorAheadError{Cursor: max(from, to), Head: head}
	case bounded && from > to:
		return nil, 0, invalid("to", "must not be less than from")
	case from == to: // to the log, a bound of 0 would mean its head
		return func(func(eventlog.Record, error) bool) {}, 0, nil
	case dead:
		return s.log.Read(r.Context(), r.session, from, to), limit, nil
	}
	return eventlog.Effective(r.Context(), s.log, r.session, from, to), limit, nil
}
