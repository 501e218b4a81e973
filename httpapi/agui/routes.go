package agui

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/snapshot"
)

// Routes serve AG-UI.
type Routes struct {
	log    eventlog.Log
	loop   *engine.Loop
	states *snapshot.Store
}

// New returns the routes.
func New(log eventlog.Log, loop *engine.Loop, states *snapshot.Store) *Routes {
	return &Routes{log: log, loop: loop, states: states}
}

// Run answers POST /ag-ui/{agent}: it begins a run of the thread, and answers with its events.
// The request is durable before the first byte of the answer. A client that leaves does not
// stop the run.
func (s *Routes) Run(w http.ResponseWriter, r *web.Request) error {
	raw, err := r.ReadSession(w, api.MaxBody, "threadId")
	if err != nil {
		return err
	}
	in, err := s.parse(r, raw)
	if err != nil {
		return err
	}
	if err := r.OpenStream(); err != nil { // before anything is changed
		return err
	}
	ctx, cancel := r.Detached()
	defer cancel()
	run, err := s.begin(ctx, r.Segment(2), in)
	if err != nil {
		return err
	}
	r.LeaveBody() // the answer may take long
	return stream.Attached(r, s.log, in.thread, func(ctx context.Context, live *stream.Session) error {
		return s.send(ctx, w, r, s.reading(in.thread, run, live))
	})
}

func (s *Routes) parse(r *web.Request, raw []byte) (input, error) {
	done, err := r.ParseTurn()
	if err != nil {
		return input{}, err
	}
	defer done()
	o, err := web.ParseObject(raw)
	if err != nil {
		return input{}, err
	}
	return inputOf(o)
}

// Rejoin answers GET /ag-ui/{agent}/{threadId}: the rest of a run's stream after the event that
// the client has, or a stream that a new client can begin with. There may be nothing: 204.
func (s *Routes) Rejoin(w http.ResponseWriter, r *web.Request) error {
	after, given, err := cursor(r)
	if err != nil {
		return err
	}
	return stream.Attached(r, s.log, r.Session, func(ctx context.Context, live *stream.Session) error {
		t, err := live.State(ctx, s.states)
		switch {
		case err != nil:
			return err
		case t.AgentType != r.Segment(2):
			return eventlog.ErrSessionNotFound
		case after.Sequence > t.Head:
			return eventlog.CursorError(ctx, s.log, r.Session, after.Sequence)
		case !given && t.CurrentRun() == nil && len(t.Messages) > 0:
			web.NameSession(w.Header(), r.Session)
			r.NewEventWriter(w).Send(ctx, r.Session, standing(t))
			return nil
		case !given && t.CurrentRun() == nil:
			return r.Nothing(w)
		case !given:
			p := s.reading(r.Session, t.CurrentRun(), live)
			p.fresh = t
			return s.send(ctx, w, r, p)
		}
		p, err := s.rest(ctx, t, after, live)
		if err != nil {
			return err
		}
		if p == nil {
			return r.Nothing(w)
		}
		return s.send(ctx, w, r, p)
	})
}

// cursor returns the last event that the client has: the later one of the parameter after and of
// Last-Event-ID, since a browser that reconnects repeats its first URL.
func cursor(r *web.Request) (after web.Position, given bool, err error) {
	for name, text := range map[string]string{"after": r.Query.Values.Get("after"), api.HeaderLastEventID: r.Header.Get(api.HeaderLastEventID)} {
		if text == "" {
			continue
		}
		at, err := web.ParsePosition(name, text)
		if err != nil {
			return after, true, err
		}
		if given = true; later(at, after) {
			after = at
		}
	}
	return after, given, nil
}

// later reports whether an event comes after another one. A position without frames is after
// all events of its record.
func later(a, b web.Position) bool {
	switch {
	case a.Sequence != b.Sequence:
		return a.Sequence > b.Sequence
	case a.Frames == 0 || b.Frames == 0:
		return b.Frames != 0
	}
	return a.Frames > b.Frames
}

func (s *Routes) send(ctx context.Context, w http.ResponseWriter, r *web.Request, p *reading) error {
	out := r.NewEventWriter(w)
	out.Break = p.cut
	return p.live.Answer(ctx, out, p.run.StartSequence, true, func(records stream.Records) stream.Events {
		web.NameSession(w.Header(), p.session)
		return p.events(ctx, records)
	})
}
