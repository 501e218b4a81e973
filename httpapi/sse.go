package httpapi

import (
	"context"
	"iter"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// sse answers GET /sse (document 004, facts 4.3): the effective stream behind
// the client's cursor, and then what is live, until the stream ends or waits.
func (s *streamRoutes) sse(w http.ResponseWriter, r *request) error {
	return s.attach(w, r, true, ending, s.events)
}

// attach answers with a stream of events behind the client's cursor. What is
// wrong with the cursor is told before the headers. ending tells what to send
// instead of following, if anything; events is given the records between the
// cursor and at.head. closes is of streams with an event close. The session's head
// is asked for once.
func (s *streamRoutes) attach(w http.ResponseWriter, r *request, closes bool, ending func(*projector.Session) *event,
	events func(ctx context.Context, history iter.Seq2[eventlog.Record, error], at start) iter.Seq2[event, error],
) error {
	from, err := cursor(r)
	if err != nil {
		return err
	}
	return r.streaming(r.session, func(ctx context.Context) error {
		live, err := eventlog.Attach(ctx, s.log, r.session)
		if err != nil {
			return err
		}
		defer live.Leave()
		past := eventlog.WithHead(ctx, r.session, live.Head)
		t, err := s.states.Head(past, r.session)
		if err != nil {
			return err
		}
		if from > t.Head {
			return eventlog.Ahead(ctx, s.log, r.session, from)
		}
		at := startOf(r.session, t, ending)
		at.live = live.Follow
		history, stop, err := peek(s.log.Read(past, r.session, from, t.Head))
		if err != nil {
			return err
		}
		defer stop()
		out := r.newEventWriter(w)
		out.closes = closes
		s.stream(ctx, r, out, events(ctx, history, at))
		return nil
	})
}

// stream answers with events, as long as there are any and the client takes
// them.
func (s *streamRoutes) stream(ctx context.Context, r *request, out *eventWriter, events iter.Seq2[event, error]) {
	if err := out.open(); err != nil || r.Method == http.MethodHead {
		return // the client has left
	}
	if err := out.pump(ctx, events); err != nil {
		s.logger.ErrorContext(r.Context(), "stream broke off", eventlog.LogSession, r.session, "error", err)
	}
}

// peek reads the first record ahead, since a read that retention has made
// impossible says so only then. The records are there until stop is called.
func peek(records iter.Seq2[eventlog.Record, error]) (all iter.Seq2[eventlog.Record, error], stop func(), err error) {
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

// cursor returns the sequence that the client has seen: the parameter
// fromSequence, else the header X-Resume-From-Sequence, else Last-Event-ID. A
// browser that reconnects repeats the parameter that it began with and says
// in Last-Event-ID how far it has come: then that counts.
func cursor(r *request) (uint64, error) {
	if n, given, err := r.query.number("fromSequence"); given {
		if last := r.Header.Get(api.HeaderLastEventID); err == nil && last != "" {
			seen, err := parseNumber(api.HeaderLastEventID, last)
			return max(n, seen), err
		}
		return n, err
	}
	for _, name := range []string{api.HeaderResumeFrom, api.HeaderLastEventID} {
		if v := r.Header.Get(name); v != "" {
			return parseNumber(name, v)
		}
	}
	return 0, nil
}

// start is what a stream needs to know of the state that it starts from.
// The state itself is not kept: a client may stay for long.
type start struct {
	session, root string
	head          uint64
	dead          eventlog.Dead
	status        eventlog.StreamStatus
	end           *event // what to send at head instead of following
	live          func(context.Context) iter.Seq2[eventlog.Record, error]
}

// follow yields the records after head.
func (at start) follow(ctx context.Context) iter.Seq2[eventlog.Record, error] {
	return after(at.head, at.live(ctx))
}

// after leaves out the records up to head, which the state that it is of has already.
func after(head uint64, records iter.Seq2[eventlog.Record, error]) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range records {
			if (err != nil || r.Sequence > head) && !yield(r, err) {
				return
			}
		}
	}
}

func startOf(session string, t *projector.Tree, ending func(*projector.Session) *event) start {
	return start{
		session: session, root: t.SessionID, head: t.Head, dead: t.Dead, status: t.StreamStatus, end: ending(&t.Session),
	}
}

// events yields what a client gets.
//
// Up to at.head these are the records of history that are not truncated there,
// which is eventlog.Effective with the markers that the fold has collected
// already. Ends of earlier turns are facts among them and say nothing. From
// at.head on it follows the log, so nothing is lost or sent twice in between.
func (s *streamRoutes) events(ctx context.Context, history iter.Seq2[eventlog.Record, error], at start) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		for r, err := range history {
			if err != nil {
				yield(event{}, err)
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
				yield(event{}, err)
				return
			}
			if e, ok := s.live.chunkEvent(r); ok {
				if !yield(e, nil) {
					return
				}
				continue
			}
			if r.Agent != at.root || !mayEnd(r.Envelope) {
				continue
			}
			t, err := s.states.At(ctx, at.session, r.Sequence)
			if err != nil {
				yield(event{}, err)
				return
			}
			if end := ending(&t.Session); end != nil {
				yield(*end, nil)
				return
			}
		}
	}
}

// mayEnd reports whether a fact is worth asking the fold whether the stream
// is over. The fold decides, for attached clients as for fresh ones.
func mayEnd(e eventlog.Envelope) bool {
	if e.Kind != eventlog.KindFact {
		return false
	}
	switch e.Type {
	case (*eventlog.StreamEnd)(nil).Type(), (*eventlog.StreamFailed)(nil).Type(),
		(*eventlog.StreamPaused)(nil).Type(), (*eventlog.RunEnded)(nil).Type(),
		(*eventlog.Truncated)(nil).Type(): // a rollback, into a turn that had ended
		return true
	}
	return false
}

// ending returns the event that ends the stream in this state, or nil if it
// goes on.
func ending(s *projector.Session) *event {
	var data any
	name := "end"
	switch waiting := waiting(s); {
	case s.StreamStatus == eventlog.StreamCompleted:
		data = api.EndEvent{Type: name, Output: s.Output, State: s.CustomState.Bytes()}
	case s.StreamStatus == eventlog.StreamTerminated:
		name = "error"
		data = api.ErrorEvent{Type: name, Error: failureOf(s), Recoverable: s.Error != nil && s.Error.Retryable}
	case waiting != "":
		data = api.EndEvent{Type: name, Status: waiting}
	default:
		return nil
	}
	raw, err := marshal(data)
	if err != nil { // a stored output or state that is not JSON
		raw, _ = marshal(api.EndEvent{Type: name})
	}
	return &event{name: name, data: raw}
}
