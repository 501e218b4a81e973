package httpapi

import (
	"errors"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// UsagePage is the answer of GET /sessions/{id}/usage (facts 3.6): a page of
// what the session's tree has used, oldest first, each entry under the session
// and the run that used it; and the sums of all of it.
//
// What a rollback has taken back was used all the same. A fork begins at zero.
type UsagePage struct {
	Page[projector.UsageEntry]
	// Rollup sums the whole tree up to the head: in all, by model, tool and
	// source, for each run, and for each sub-agent alone.
	Rollup projector.Rollup `json:"rollup"`
	// Floor is set if retention has removed the records up to it: there are no
	// entries then. The sums stay.
	Floor uint64 `json:"floor,omitempty"`
}

// usage answers GET /sessions/{id}/usage. Entries are told by the records
// alone: each page reads the session.
func (s *Server) usage(w http.ResponseWriter, r *request) error {
	offset, limit, err := r.query.page()
	if err != nil {
		return err
	}
	t, err := s.states.Head(r.Context(), r.session)
	if err != nil {
		return err
	}
	found := UsagePage{
		Page:   Page[projector.UsageEntry]{Items: []projector.UsageEntry{}, Offset: offset, Limit: limit},
		Rollup: t.RollUp(t.SessionID),
	}
	for e, err := range projector.UsageEntries(s.log.Read(r.Context(), r.session, 0, t.Head)) {
		if trimmed, ok := errors.AsType[*eventlog.TrimmedError](err); ok {
			found.Floor = trimmed.Floor
			break
		}
		if err != nil {
			return err
		}
		if found.Total >= offset && len(found.Items) < limit {
			found.Items = append(found.Items, e)
		}
		found.Total++
	}
	found.HasMore = offset+len(found.Items) < found.Total
	return s.ok(w, found)
}
