package stream

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// SSE answers GET /sse (see docs/reference/protocol.md#event-streams): the effective stream after
// the client's cursor, then live chunks, until the stream ends or waits.
func (s *Routes) SSE(w http.ResponseWriter, r *web.Request) error {
	return s.attach(w, r, true, ending, s.events)
}

// attach answers with a stream of events after the client's cursor. An error of the cursor
// is answered before the headers. ending returns the event to send instead of following,
// or nil. events receives the records after the cursor. closes is for streams with an event
// close.
func (s *Routes) attach(w http.ResponseWriter, r *web.Request, closes bool, ending func(*projector.Session) *web.Event,
	events func(ctx context.Context, records Records, at start) Events,
) error {
	from, err := cursor(r)
	if err != nil {
		return err
	}
	return Attached(r, s.log, r.Session, func(ctx context.Context, live *Session) error {
		t, err := live.State(ctx, s.states)
		if err != nil {
			return err
		}
		if from > t.Head {
			return eventlog.CursorError(ctx, s.log, r.Session, from)
		}
		at := startOf(r.Session, t, ending)
		out := r.NewEventWriter(w)
		out.Closes = closes
		return live.Answer(ctx, out, from, at.end == nil, func(records Records) Events { return events(ctx, records, at) })
	})
}

// cursor returns the last sequence that the client has: the parameter fromSequence, else
// the header X-Resume-From-Sequence, else Last-Event-ID. A browser that reconnects repeats
// its first fromSequence and adds a Last-Event-ID: then the larger one counts.
func cursor(r *web.Request) (uint64, error) {
	if n, given := r.Query.Number("fromSequence"); given {
		if last := r.Header.Get(api.HeaderLastEventID); last != "" {
			seen, err := web.ParseNumber(api.HeaderLastEventID, last)
			r.Query.Fail(err)
			n = max(n, seen)
		}
		return n, *r.Query.Err
	}
	for _, name := range []string{api.HeaderResumeFrom, api.HeaderLastEventID} {
		if v := r.Header.Get(name); v != "" {
			return web.ParseNumber(name, v)
		}
	}
	return 0, nil
}

// start is what a stream needs of the state that it starts from. It does not keep the
// state, since a client may stay for long.
type start struct {
	session, root string
	head          uint64
	dead          eventlog.Truncations
	status        eventlog.StreamStatus
	end           *web.Event // what to send at head instead of following
}

func startOf(session string, t *projector.Tree, ending func(*projector.Session) *web.Event) start {
	return start{
		session: session, root: t.SessionID, head: t.Head, dead: t.Dead, status: t.StreamStatus, end: ending(&t.Session),
	}
}

// events yields the events of a client.
//
// Up to at.head these are the records that are not truncated: as eventlog.Effective, but
// with the markers that the fold has collected already. Facts among them that ended earlier
// turns make no event.
func (s *Routes) events(ctx context.Context, records Records, at start) Events {
	return func(yield func(web.Event, error) bool) {
		for r, err := range records {
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			past := r.Sequence <= at.head
			if past && at.dead.Covers(r) {
				continue
			}
			eventOf := chunkEvent
			if !past { // other clients get it, too
				eventOf = s.live.chunkEvent
			}
			if e, ok := eventOf(r); ok {
				if !yield(e, nil) {
					return
				}
				continue
			}
			if past || r.Agent != at.root || !MayEnd(r.Envelope) {
				continue
			}
			t, err := s.states.At(ctx, at.session, r.Sequence)
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			if end := ending(&t.Session); end != nil {
				s.finish(ctx, at.session, r, *end, yield)
				return
			}
		}
		if at.end != nil {
			yield(*at.end, nil)
		}
	}
}

// finish yields the event that ends the stream with a record. If that is a rollback's marker, the
// client is notified of it first.
func (s *Routes) finish(ctx context.Context, session string, r eventlog.Record, end web.Event, yield func(web.Event, error) bool) {
	resync, told, err := ResyncOf(ctx, s.log, session, r)
	if err != nil {
		yield(web.Event{}, err)
		return
	}
	if e, ok := chunkEvent(resync); told && ok && !yield(e, nil) {
		return
	}
	yield(end, nil)
}

// MayEnd reports whether a fact may end the stream. Whether it does is decided by the
// fold, for attached clients as for new ones.
func MayEnd(e eventlog.Envelope) bool {
	if e.Kind != eventlog.KindFact {
		return false
	}
	switch e.Type {
	case (*fact.StreamEnd)(nil).Type(), (*fact.StreamFailed)(nil).Type(),
		(*fact.StreamPaused)(nil).Type(), (*fact.RunEnded)(nil).Type(),
		(*eventlog.Truncated)(nil).Type(): // a rollback, into a turn that had ended
		return true
	}
	return false
}

// ending returns the event that ends the stream in this state, or nil if it
// continues.
func ending(s *projector.Session) *web.Event {
	var data any
	name := "end"
	switch waiting := Waiting(s); {
	case s.StreamStatus == eventlog.StreamCompleted:
		data = api.EndEvent{Type: name, Output: s.Output, State: s.CustomState.Bytes()}
	case s.StreamStatus == eventlog.StreamTerminated:
		name = "error"
		data = api.ErrorEvent{Type: name, Error: FailureOf(s), Recoverable: s.Error != nil && s.Error.Retryable}
	case waiting != "":
		data = api.EndEvent{Type: name, Status: waiting}
	default:
		return nil
	}
	raw, err := eventlog.Marshal(data)
	if err != nil { // a stored output or state that is not JSON
		raw, _ = eventlog.Marshal(api.EndEvent{Type: name})
	}
	return &web.Event{Name: name, Data: raw}
}
