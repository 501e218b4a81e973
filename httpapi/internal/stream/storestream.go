package stream

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// StoreStream answers GET /sessions/{id}/stream: the session's stream as the
// unnamed events (see docs/reference/protocol.md#event-streams), for other stores and bridges. Events
// have no names: the data says its type.
//
//	chunk      id is its sequence
//	end, fail  the last one; id is a sequence up to which everything has come
//	status     the stream pauses or continues; a pause does not end it
//	truncated  records were truncated while the client was attached
//
// A marker makes one event, for each client that was attached when it was written. A
// client that has all chunks up to atSequence has the truncated ones; any other client
// gets only the surviving ones from then on. A client that attaches later gets the
// surviving ones and no event. truncatedAtStep is the marker's own; if the marker was not
// written by step, it is the last committed step of the marker's agent in the state after
// it.
//
// The cursor is that of /sse. A new client of a stream that has ended gets its chunks and
// the end; once a new turn has begun, it gets the chunks of all turns and live ones.
func (s *Routes) StoreStream(w http.ResponseWriter, r *web.Request) error {
	return s.attach(w, r, false, storeEnding, func(ctx context.Context, records Records, at start) Events {
		f := &storeEvents{Routes: s, at: at, every: lookEvery, known: at.head, looked: time.Now()}
		return f.events(ctx, records)
	})
}

// lookEvery is how often the server looks ahead for a client that lags, so that it gets
// markers before the records that they have truncated. Each look costs a request to the
// log's leader: one for each record would take most of the time of a long catch-up.
const lookEvery = 100 * time.Millisecond

// storeEvents makes the events of one client.
type storeEvents struct {
	*Routes
	at     start // status and dead are kept up to date
	every  time.Duration
	looked time.Time
	known  uint64 // markers are known up to here
}

// events yields the client's events.
func (f *storeEvents) events(ctx context.Context, records Records) Events {
	return func(yield func(web.Event, error) bool) {
		for r, err := range records {
			var out []web.Event
			over := false
			if err == nil {
				out, over, err = f.take(ctx, r)
			}
			for _, e := range out {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(web.Event{}, err)
			}
			if over || err != nil {
				return
			}
		}
		if f.at.end != nil {
			end := *f.at.end
			end.ID.Sequence = f.at.head
			yield(end, nil)
		}
	}
}

// take returns the events of the next record, and whether the stream has ended.
func (f *storeEvents) take(ctx context.Context, r eventlog.Record) (out []web.Event, over bool, err error) {
	out, err = f.look(ctx, r)
	if err != nil || f.at.dead.Covers(r) {
		return out, false, err
	}
	if e, ok := f.live.chunkEvent(r); ok {
		e.Name = ""
		return append(out, e), false, nil
	}
	// Only a fact of the root's changes the stream; what those up to at.head
	// did is in at. The fold decides, as for fresh clients.
	if r.Sequence <= f.at.head || r.Agent != f.at.root ||
		f.at.status.After(r.Envelope) == f.at.status && !isMarker(r.Envelope) {
		return out, false, nil
	}
	t, err := f.states.At(ctx, f.at.session, r.Sequence)
	if err != nil {
		return out, false, err
	}
	if end := storeEnding(&t.Session); end != nil {
		end.ID.Sequence = r.Sequence
		return append(out, *end), true, nil
	}
	if t.StreamStatus != f.at.status {
		f.at.status = t.StreamStatus
		out = append(out, storeEvent(api.StatusEvent{Type: "status", Status: t.StreamStatus}))
	}
	return out, false, nil
}

// look reads the markers that exist by now, before r is sent, and returns their events.
func (f *storeEvents) look(ctx context.Context, r eventlog.Record) (out []web.Event, err error) {
	learn := func(r eventlog.Record) error {
		f.known = r.Sequence
		if !isMarker(r.Envelope) {
			return nil
		}
		if err := f.at.dead.Add(r); err != nil {
			return err
		}
		e, err := f.truncated(ctx, r)
		out = append(out, e)
		return err
	}
	if r.Sequence > f.known { // it is the next one
		if err := learn(r); err != nil {
			return nil, err
		}
	}
	if time.Since(f.looked) < f.every {
		return out, nil
	}
	f.looked = time.Now()
	head, err := f.log.Head(ctx, f.at.session)
	if err != nil || head <= f.known {
		return out, err
	}
	for r, err := range f.log.Read(ctx, f.at.session, f.known, head) {
		if err == nil {
			err = learn(r)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// truncated returns the event of a marker.
func (f *storeEvents) truncated(ctx context.Context, r eventlog.Record) (web.Event, error) {
	fact, err := r.Fact()
	if err != nil {
		return web.Event{}, err
	}
	m := fact.(*eventlog.Truncated)
	data := api.TruncatedEvent{Type: m.Type(), AtSequence: m.AtSequence}
	if m.TruncatedAtStep != nil {
		data.TruncatedAtStep = *m.TruncatedAtStep
		return storeEvent(data), nil
	}
	t, err := f.states.At(ctx, f.at.session, r.Sequence)
	if err != nil {
		return web.Event{}, err
	}
	if agent := t.Get(r.Agent); agent != nil {
		data.TruncatedAtStep = agent.StepCount
	}
	return storeEvent(data), nil
}

func isMarker(e eventlog.Envelope) bool {
	return e.Kind == eventlog.KindFact && e.Type == (*eventlog.Truncated)(nil).Type()
}

// storeEnding returns the event that ends the stream in this state, or nil if
// it continues.
func storeEnding(s *projector.Session) *web.Event {
	var e web.Event
	switch s.StreamStatus {
	case eventlog.StreamCompleted:
		e = storeEvent(api.StoreEndEvent{Type: "end", FinalOutput: s.Output})
	case eventlog.StreamTerminated:
		e = storeEvent(api.StoreFailEvent{Type: "fail", Error: FailureOf(s)})
	default:
		return nil
	}
	if e.Data == nil { // a stored output that is not JSON
		e = storeEvent(api.StoreEndEvent{Type: "end"})
	}
	return &e
}

func storeEvent(data any) web.Event {
	raw, err := eventlog.Marshal(data)
	if err != nil {
		return web.Event{}
	}
	return web.Event{Data: raw}
}
