package stream

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// recordQuery is the query of GET /sessions/{id}/records.
type recordQuery struct {
	from, to uint64
	bounded  bool // to is given
	limit    int
	dead     bool
	follow   bool
	filter   recordFilter
}

// recordFilter selects records by their envelopes. An empty field selects all.
type recordFilter struct {
	kind             eventlog.Kind
	types            []string
	agent, run, call string
}

func (f recordFilter) takes(e eventlog.Envelope) bool {
	is := func(wanted, value string) bool { return wanted == "" || wanted == value }
	return is(string(f.kind), string(e.Kind)) && (f.types == nil || slices.Contains(f.types, e.Type)) &&
		is(f.agent, e.Agent) && is(f.run, e.Run) && is(f.call, e.Call)
}

func recordsOf(q web.Query) (want recordQuery, err error) {
	want.from, _ = q.Number("from")
	want.to, want.bounded = q.Number("to")
	want.limit = q.Integer("limit", math.MaxInt, 1, math.MaxInt)
	want.dead, want.follow = q.Flag("dead", false), q.Flag("follow", false)
	switch {
	case want.follow && want.bounded:
		q.Fail(web.Invalid("to", "ends the records, and follow continues them: use one of the two"))
	case want.follow && !want.dead && q.Values.Has("dead"):
		q.Fail(web.Invalid("dead", "must not be false with follow: what will be truncated can't be known"))
	}
	want.filter = recordFilter{
		kind: web.OneOf(q, "kind", []eventlog.Kind{eventlog.KindChunk, eventlog.KindFact}), types: q.Words(web.ParamType, api.MaxRecordTypes),
		agent: q.SessionID("agent"), run: q.Word("run"), call: q.Word("call"),
	}
	return want, *q.Err
}

// Records answers GET /sessions/{id}/records: the records with from < sequence <= to as
// NDJSON, facts included, as far as they pass the filters. Records that a marker up to to
// has truncated are left out unless dead=1.
func (s *Routes) Records(w http.ResponseWriter, r *web.Request) error {
	want, err := recordsOf(r.Query)
	if err != nil {
		return err
	}
	if want.follow {
		return s.followRecords(w, r, want)
	}
	all, err := s.selected(r, want)
	if err != nil {
		return err
	}
	s.auditExport(r)
	rc := http.NewResponseController(w)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/x-ndjson")
	n, left := 0, r.WriteTimeout
	for rec, err := range all {
		if err != nil {
			return err // before the first record an error answer, after it an abort
		}
		if n == want.limit || r.Method == http.MethodHead {
			break
		}
		if !want.filter.takes(rec.Envelope) {
			continue
		}
		n++
		line, err := eventlog.Marshal(rec)
		if err != nil {
			return err
		}
		if err := r.WritePart(w, rc, append(line, '\n'), &left); err != nil {
			panic(http.ErrAbortHandler) // the client has left
		}
	}
	r.ExtendDeadline(rc)
	return nil
}

// auditExport logs that a caller reads records. It logs each request, since several
// requests can export a session in parts.
func (s *Routes) auditExport(r *web.Request) {
	if r.Method != http.MethodHead {
		r.Audit("session exported")
	}
}

// selected returns the records of a request, unfiltered.
func (s *Routes) selected(r *web.Request, want recordQuery) (Records, error) {
	head, err := s.log.Head(r.Context(), r.Session)
	if err != nil {
		return nil, err
	}
	from, to := want.from, want.to
	if !want.bounded {
		to = head // now, so that the markers that count are those up to here
	}
	switch {
	case max(from, to) > head:
		return nil, eventlog.CursorError(r.Context(), s.log, r.Session, max(from, to))
	case want.bounded && from > to:
		return nil, web.Invalid("to", "must not be less than from")
	case from == to: // to the log, a bound of 0 would mean its head
		return func(func(eventlog.Record, error) bool) {}, nil
	case want.dead:
		return s.log.Read(r.Context(), r.Session, from, to), nil
	}
	return eventlog.Effective(r.Context(), s.log, r.Session, from, to), nil
}

// followRecords answers with the records after from and then with new ones, until the
// client leaves or has limit records. Truncated records are not left out: the markers
// follow them. However the answer ends, the client resumes after the last record that it
// has.
func (s *Routes) followRecords(w http.ResponseWriter, r *web.Request, want recordQuery) error {
	return Attached(r, s.log, r.Session, func(ctx context.Context, live *Session) error {
		if want.from > live.Head {
			return eventlog.CursorError(ctx, s.log, r.Session, want.from)
		}
		out := r.NewEventWriter(w)
		out.Lines = true
		return live.Answer(ctx, out, want.from, true, func(records Records) Events {
			s.auditExport(r)
			return lines(want, records)
		})
	})
}

// lines returns the records that pass the filter as events of NDJSON.
func lines(want recordQuery, records Records) Events {
	return func(yield func(web.Event, error) bool) {
		n := 0
		for r, err := range records {
			var e web.Event
			if err == nil {
				if !want.filter.takes(r.Envelope) {
					continue
				}
				e.Data, err = eventlog.Marshal(r)
			}
			if err != nil {
				yield(web.Event{}, fmt.Errorf("httpapi: follow records: %w", err))
				return
			}
			if n++; !yield(e, nil) || n == want.limit {
				return
			}
		}
	}
}
