package operate

import (
	"math"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/snapshot"
)

// Retain answers POST /retention: {purgeOlderThan?, dropOlderThan?, maxBytes?},
// durations such as "72h" and a number.
func (s *Routes) Retain(w http.ResponseWriter, r *web.Request) error {
	// It is about all sessions, so callers that are limited to some may not. Only a
	// glob that takes every session takes the session "*".
	if err := r.Allow(auth.OpRetain, auth.AllSessions); err != nil {
		return err
	}
	body, err := r.ReadObject(w)
	if err != nil {
		return err
	}
	var want snapshot.Retention
	want.Purge, want.PurgeOlderThan = body.Duration("purgeOlderThan")
	want.Drop, want.DropOlderThan = body.Duration("dropOlderThan")
	if body.Has("maxBytes") {
		want.MaxBytes = body.Number("maxBytes", 1, math.MaxInt64)
	}
	if *body.Err != nil {
		return *body.Err
	}
	if !want.Purge && !want.Drop && want.MaxBytes == 0 {
		return &eventlog.ValidationError{Reason: "purgeOlderThan, dropOlderThan or maxBytes is required"}
	}
	done, err := s.States.Retain(r.Context(), want)
	if err != nil {
		return err
	}
	return r.OK(w, api.Retained(done))
}
