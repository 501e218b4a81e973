package httpapi

import (
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/snapshot"
)

// retain answers POST /retention: {purgeOlderThan?, dropOlderThan?, maxBytes?},
// durations such as "72h" and a number.
func (s *Server) retain(w http.ResponseWriter, r *request) error {
	// It is about all sessions, so callers that are limited to some may not. Only a
	// glob that takes every session takes the session "*".
	if err := s.allow(r.Request, auth.OpRetain, auth.AllSessions); err != nil {
		return err
	}
	body, err := readObject(w, r)
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
	return s.ok(w, api.Retained(done))
}

// duration returns an optional duration that is not negative.
func (o *object) duration(name string) (given bool, d time.Duration) {
	if _, given = o.members[name]; !given {
		return false, 0
	}
	d, err := time.ParseDuration(o.word(name))
	if err != nil || d < 0 {
		o.fail(name, `must be a duration such as "72h"`)
	}
	return true, d
}
