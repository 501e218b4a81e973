package stream

import (
	"context"
	"iter"
	"log/slog"
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
// or nil. events receives the records between the cursor and at.head. closes is for streams
// with an event close. The session's head is read once.
func (s *Routes) attach(w http.ResponseWriter, r *web.Request, closes bool, ending func(*projector.Session) *web.Event,
	events func(ctx context.Context, history iter.Seq2[eventlog.Record, error], at start) iter.Seq2[web.Event, error],
) error {
	from, err := cursor(r)
	if err != nil {
		return err
	}
	return r.Streaming(r.Session, func(ctx context.Context) error {
		live, err := eventlog.Attach(ctx, s.log, r.Session)
		if err != nil {
			return err
		}
		defer live.Leave()
		past := eventlog.WithHead(ctx, r.Session, live.Head)
		t, err := s.states.Head(past, r.Session)
		if err != nil {
			return err
		}
		if from > t.Head {
			return eventlog.CursorError(ctx, s.log, r.Session, from)
		}
		at := startOf(r.Session, t, ending)
		at.live = live.Follow
		history, stop, err := Peek(s.log.Read(past, r.Session, from, t.Head))
		if err != nil {
			return err
		}
		defer stop()
		out := r.NewEventWriter(w)
		out.Closes = closes
		Send(ctx, s.logger, r, r.Session, out, events(ctx, history, at))
		return nil
	})
}

// Send answers with a session's events until they end or the client leaves.
func Send(ctx context.Context, logger *slog.Logger, r *web.Request, session string, out *web.EventWriter, events iter.Seq2[web.Event, error]) {
	if err := out.Open(); err != nil || r.Method == http.MethodHead {
		return // the client has left
	}
	if err := out.Pump(ctx, events); err != nil {
		logger.ErrorContext(r.Context(), "stream broke off", eventlog.LogSession, session, "error", err)
	}
}

// Peek reads the first record ahead: only then does a read fail whose records retention
// has removed. The records can be read until stop is called.
func Peek(records iter.Seq2[eventlog.Record, error]) (all iter.Seq2[eventlog.Record, error], stop func(), err error) {
	next, stop := iter.Pull2(records)
	r, err, ok := next()
	if err != nil {
		stop()
		return nil, nil, err
	}
	return func(yield func(eventlog.Record, error) bool) {
		for ok && yield(r, err) {
			r, err, ok = next()
		}
	}, stop, nil
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
	live          func(context.Context) iter.Seq2[eventlog.Record, error]
}

// follow yields the records after head.
func (at start) follow(ctx context.Context) iter.Seq2[eventlog.Record, error] {
	return After(at.head, at.live(ctx))
}

// After leaves out the records up to head.
func After(head uint64, records iter.Seq2[eventlog.Record, error]) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range records {
			if (err != nil || r.Sequence > head) && !yield(r, err) {
				return
			}
		}
	}
}

// Since yields the records of a session after a sequence, as they come. live is attached to it.
func Since(ctx context.Context, log eventlog.Log, session string, after uint64, live eventlog.Attachment) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		past := eventlog.WithHead(ctx, session, live.Head)
		for r, err := range log.Read(past, session, after, live.Head) {
			if !yield(r, err) || err != nil {
				return
			}
		}
		for r, err := range After(live.Head, live.Follow(ctx)) {
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

func startOf(session string, t *projector.Tree, ending func(*projector.Session) *web.Event) start {
	return start{
		session: session, root: t.SessionID, head: t.Head, dead: t.Dead, status: t.StreamStatus, end: ending(&t.Session),
	}
}

// events yields the events of a client.
//
// Up to at.head these are the records of history that are not truncated: as
// eventlog.Effective, but with the markers that the fold has collected already. Facts
// among them that ended earlier turns make no event. From at.head on it follows the log,
// so no record is lost or sent twice in between.
func (s *Routes) events(ctx context.Context, history iter.Seq2[eventlog.Record, error], at start) iter.Seq2[web.Event, error] {
	return func(yield func(web.Event, error) bool) {
		for r, err := range history {
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			if at.dead.Covers(r) {
				continue
			}
			if e, ok := chunkEvent(r); ok && !yield(e, nil) {
				return
			}
		}
		if at.end != nil {
			yield(*at.end, nil)
			return
		}
		for r, err := range at.follow(ctx) {
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			if e, ok := s.live.chunkEvent(r); ok {
				if !yield(e, nil) {
					return
				}
				continue
			}
			if r.Agent != at.root || !MayEnd(r.Envelope) {
				continue
			}
			t, err := s.states.At(ctx, at.session, r.Sequence)
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			if end := ending(&t.Session); end != nil {
				yield(*end, nil)
				return
			}
		}
	}
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
