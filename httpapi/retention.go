package httpapi

import (
	"errors"
	"math"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot"
)

// retain answers POST /retention: {purgeOlderThan?, dropOlderThan?, maxBytes?},
// durations such as "72h" and a number.
func (s *operateRoutes) retain(w http.ResponseWriter, r *request) error {
	// It is about all sessions, so callers that are limited to some may not. Only a
	// glob that takes every session takes the session "*".
	if err := r.allow(auth.OpRetain, auth.AllSessions); err != nil {
		return err
	}
	body, err := r.readObject(w)
	if err != nil {
		return err
	}
	var want snapshot.Retention
	want.Purge, want.PurgeOlderThan = body.duration("purgeOlderThan")
	want.Drop, want.DropOlderThan = body.duration("dropOlderThan")
	if body.has("maxBytes") {
		want.MaxBytes = body.number("maxBytes", 1, math.MaxInt64)
	}
	if *body.err != nil {
		return *body.err
	}
	if !want.Purge && !want.Drop && want.MaxBytes == 0 {
		return &eventlog.ValidationError{Reason: "purgeOlderThan, dropOlderThan or maxBytes is required"}
	}
	done, err := s.states.Retain(r.Context(), want)
	if errors.Is(err, snapshot.ErrNoArchive) {
		return &eventlog.ValidationError{Reason: "this log has no segments"}
	}
	if err != nil {
		return err
	}
	return r.ok(w, api.Retained(done))
}
