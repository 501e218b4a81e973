package responses

import (
	"context"
	"net/http"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// folderOf returns a folder for a run that knows its agent.
func folderOf(p place, emit func(event)) *folder {
	f := newFolder(p.session, p.run.RunID, emit)
	f.state.agent = p.tree.AgentType
	f.state.status = statusInProgress
	return f
}

// now folds a run up to the state that the place has.
func (s *Routes) now(ctx context.Context, p place) (*folder, error) {
	f := folderOf(p, nil)
	for r, err := range s.log.Read(ctx, p.session, p.run.StartSequence, p.tree.Head) {
		if err != nil {
			return nil, err
		}
		if f.fold(r); f.ended {
			break
		}
	}
	return f, nil
}

// await folds a run until it ends. If ctx ends first, it returns what there is, and the cause.
func (s *Routes) await(ctx context.Context, p place) (*folder, error) {
	f := folderOf(p, nil)
	live, err := stream.Attach(ctx, s.log, p.session)
	if err != nil {
		return f, err
	}
	defer live.Leave()
	for r, err := range live.Since(ctx, p.run.StartSequence) {
		if err != nil && ctx.Err() == nil {
			return f, err
		}
		if err != nil {
			break
		}
		if f.fold(r); f.ended {
			return f, nil
		}
	}
	return f, context.Cause(ctx)
}

// stream answers with the events of a response whose sequence_number is greater than after,
// until the response ends.
func (s *Routes) stream(w http.ResponseWriter, r *web.Request, p place, after int) error {
	return stream.Attached(r, s.log, p.session, func(ctx context.Context, live *stream.Session) error {
		out, sent := r.NewEventWriter(w), &progress{last: after}
		// The SDKs take a stream that just ends for a whole one.
		out.Break = func() web.Event {
			if sent.over {
				return web.Event{}
			}
			return broken(sent.last)
		}
		return live.Answer(ctx, out, p.run.StartSequence, true, func(records stream.Records) stream.Events {
			web.NameSession(w.Header(), p.session)
			return events(p, records, sent)
		})
	})
}

// progress is how much of a stream the client has.
type progress struct {
	last int  // the sequence_number of the last event; -1: none
	over bool // no other one comes
}

// events yields the events of a response that the client lacks, and updates sent.
func events(p place, records stream.Records, sent *progress) stream.Events {
	return func(yield func(web.Event, error) bool) {
		var ready []event
		f := folderOf(p, func(e event) { ready = append(ready, e) })
		f.after = sent.last
		for r, err := range records {
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			f.fold(r)
			for _, e := range ready {
				data, err := eventlog.Marshal(e.data)
				if !yield(web.Event{Name: e.name, Data: data}, err) || err != nil {
					return
				}
				sent.last = e.data["sequence_number"].(int)
			}
			if ready = ready[:0]; f.ended {
				sent.over = true
				yield(web.Event{Data: []byte("[DONE]")}, nil)
				return
			}
		}
	}
}

// broken is the last event of a stream that ends before its response does. Its sequence_number is
// that of the last event that the client has, since clients continue after the last one they saw.
func broken(last int) web.Event {
	data, _ := eventlog.Marshal(object{
		"type": "error", "code": "server_error", "param": nil, "sequence_number": last,
		"message": "The stream has broken off, and the response continues: continue the stream with starting_after.",
	})
	return web.Event{Name: "error", Data: data}
}
