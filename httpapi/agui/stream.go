package agui

import (
	"context"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// The id of an event is the sequence of its record and, after a dot, its number among the events
// of that record, from 1.

// Events that the request of the next run makes have numbers after all others of the record
// before it, since that run's first events are that record's.
const passedFrames = 1 << 20

func (f *folder) position(r eventlog.Record, i int) web.Position {
	if f.passed {
		return web.Position{Sequence: r.Sequence - 1, Frames: passedFrames + i + 1}
	}
	return web.Position{Sequence: r.Sequence, Frames: i + 1}
}

// reading is the stream of a run for one client.
type reading struct {
	log    eventlog.Log
	states *snapshot.Store

	session string
	run     *projector.Run
	live    *stream.Session
	after   web.Position // the last event that the client has
	// fresh is the state that a new client begins with; nil: the client gets the events after
	// after.
	fresh *projector.Tree
	// over: the client has the end of the run.
	over bool
}

func (s *Routes) reading(session string, run *projector.Run, live *stream.Session) *reading {
	return &reading{log: s.log, states: s.states, session: session, run: run, live: live}
}

// rest returns the reading that a client continues with that has the events up to after, or nil
// if there is nothing to come: the rest of that event's run, else the next one.
func (s *Routes) rest(ctx context.Context, t *projector.Tree, after web.Position, live *stream.Session) (*reading, error) {
	for i := range t.Runs {
		run := &t.Runs[i]
		if i+1 < len(t.Runs) && t.Runs[i+1].StartSequence < after.Sequence {
			continue // a later run has the event
		}
		p := s.reading(t.SessionID, run, live)
		p.after = after
		more, err := p.more(ctx, t.Head)
		if err != nil {
			return nil, err
		}
		if more {
			return p, nil
		}
	}
	return nil, nil
}

// more reports whether the client lacks an event of the run, or one is still to come.
func (p *reading) more(ctx context.Context, head uint64) (bool, error) {
	f, n := p.folder(ctx), 0
	for r, err := range p.log.Read(ctx, p.session, p.run.StartSequence, head) {
		if err != nil {
			return false, err
		}
		if n = 0; r.Sequence >= p.after.Sequence {
			f.emit = func(object) { n++ }
		}
		if err := f.fold(r); err != nil {
			return false, err
		}
		if n > 0 && later(f.position(r, n-1), p.after) {
			return true, nil
		}
		if f.end != nil {
			return false, nil
		}
	}
	return true, nil
}

func (p *reading) folder(ctx context.Context) *folder {
	return newFolder(p.session, p.run.RunID, func(seq uint64) (*projector.Tree, error) { return p.states.At(ctx, p.session, seq) })
}

// events yields the run's events.
func (p *reading) events(ctx context.Context, records stream.Records) stream.Events {
	return func(yield func(web.Event, error) bool) {
		var ready []object
		collect := func(e object) { ready = append(ready, e) }
		f := p.folder(ctx)
		begun := p.fresh == nil
		last := web.Position{}
		for r, err := range records {
			if err == nil && !begun && r.Sequence > p.fresh.Head {
				if begun = true; !f.prelude(p.fresh, last, yield) {
					return
				}
			}
			if f.emit = nil; p.fresh != nil || r.Sequence >= p.after.Sequence {
				f.emit = collect
			}
			if err == nil {
				err = f.fold(r)
			}
			if err != nil {
				yield(web.Event{}, err)
				return
			}
			for i, e := range ready {
				at := f.position(r, i)
				if last = at; !begun || !later(at, p.after) {
					continue
				}
				data, err := eventlog.Marshal(e)
				if !yield(web.Event{ID: at, Data: data}, err) || err != nil {
					return
				}
			}
			ready = ready[:0]
			if !begun && r.Sequence == p.fresh.Head || f.end != nil && !begun {
				if begun = true; !f.prelude(p.fresh, last, yield) {
					return
				}
			}
			if f.end != nil {
				p.over = true
				return
			}
		}
	}
}

// prelude sends what a new client begins with: the run, its state and messages so far, and the
// beginning of what is open. Its last event has the id of the last one before, if there is one, so
// that the client can continue after it.
func (f *folder) prelude(t *projector.Tree, last web.Position, yield func(web.Event, error) bool) bool {
	var all []object
	f.emit = func(e object) { all = append(all, e) }
	f.again(t)
	for i, e := range all {
		data, err := eventlog.Marshal(e)
		out := web.Event{Data: data}
		if i == len(all)-1 {
			out.ID = last
		}
		if !yield(out, err) || err != nil {
			return false
		}
	}
	return true
}

// cut returns the last event of a stream that breaks off, since clients take a stream that merely
// ends for a run that has succeeded: none if the client has the end of the run.
func (p *reading) cut() web.Event {
	if p.over {
		return web.Event{}
	}
	return web.Event{Data: broken()}
}

// broken is the last event of a stream that ends before its run does.
func broken() []byte {
	e := runError("the stream has broken off, and the run continues: rejoin it with GET after the last event", codeBroken)
	data, _ := eventlog.Marshal(e)
	return data
}

// codeBroken is the code of a stream that has broken off.
const codeBroken = "STREAM_BROKEN_OFF"
