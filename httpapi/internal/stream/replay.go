package stream

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

// replayLook is how often a replay checks that its session still exists: it must not go
// on showing an erased session.
const replayLook = time.Second

// Replay answers GET /sessions/{id}/replay: what /sse would have sent for from < sequence
// <= to, at the pace at which it was recorded. Its last event has the session's status at
// to; that is active if the session continued.
func (s *Routes) Replay(w http.ResponseWriter, r *web.Request) error {
	from, to, bounded, err := replayed(r)
	if err != nil {
		return err
	}
	speed, most, err := paceOf(r.Query)
	if err != nil {
		return err
	}
	return r.Streaming(r.Session, func(ctx context.Context) error {
		var t *projector.Tree
		if bounded {
			t, err = s.states.At(ctx, r.Session, to)
		} else {
			t, err = s.states.Head(ctx, r.Session)
		}
		switch {
		case err != nil:
			return err
		case !bounded && from > t.Head:
			return eventlog.CursorError(ctx, s.log, r.Session, from)
		}
		p := &pace{Routes: s, session: r.Session, speed: speed, most: most}
		out := r.NewEventWriter(w)
		out.Closes, out.Paced = true, true
		return answer(ctx, out, r.Session, upTo(ctx, s.log, r.Session, from, t.Head), none, func(records Records) Events {
			return p.events(ctx, records, startOf(r.Session, t, replayEnding))
		})
	})
}

// replayed returns the range of a replay. A browser that reconnects sends its position in
// Last-Event-ID.
func replayed(r *web.Request) (from, to uint64, bounded bool, err error) {
	q := r.Query
	from, _ = q.Number("from")
	to, bounded = q.Number("to")
	if last := r.Header.Get(api.HeaderLastEventID); last != "" {
		seen, err := web.ParseNumber(api.HeaderLastEventID, last)
		q.Fail(err)
		from = max(from, seen)
	}
	if bounded && from > to {
		q.Fail(web.Invalid("to", "must not be less than from"))
	}
	return from, to, bounded, *q.Err
}

func paceOf(q web.Query) (speed float64, most time.Duration, err error) {
	speed = 1
	if v := q.Values.Get("speed"); q.Values.Has("speed") {
		speed, err = strconv.ParseFloat(v, 64)
		if err != nil || strings.Trim(v, "0123456789.") != "" || speed != 0 && (speed < api.MinReplaySpeed || speed > api.MaxReplaySpeed) {
			return 0, 0, web.Invalid("speed", fmt.Sprintf("must be 0 or a number from %v to %v", api.MinReplaySpeed, api.MaxReplaySpeed))
		}
	}
	ms := q.Integer("maxPause", int(api.DefaultReplayPause.Milliseconds()), 0, int(api.MaxReplayPause.Milliseconds()))
	return speed, time.Duration(ms) * time.Millisecond, *q.Err
}

// replayEnding returns the last event of a replay up to this state.
func replayEnding(s *projector.Session) *web.Event {
	if e := ending(s); e != nil {
		return e
	}
	data, _ := eventlog.Marshal(api.EndEvent{Type: "end", Status: string(eventlog.StreamActive)})
	return &web.Event{Name: "end", Data: data}
}

// pace delays the events of one client by the times of their records.
type pace struct {
	*Routes
	session string
	speed   float64 // 0: no pauses
	most    time.Duration

	before time.Time // when the last record was stored
	due    time.Time // when its event was
	looked time.Time
}

// replaySlack is how late an event may be without a delay of all later ones. A client
// that can't keep up is not sent a burst.
const replaySlack = 250 * time.Millisecond

// events yields the chunks of history that are not truncated at at.head, each when
// it is due, and then at.end.
func (p *pace) events(ctx context.Context, history Records, at start) Events {
	return func(yield func(web.Event, error) bool) {
		for r, err := range history {
			if err == nil && at.dead.Covers(r) {
				continue
			}
			var e web.Event
			if err == nil {
				var ok bool
				if e, ok = chunkEvent(r); !ok {
					continue
				}
				err = p.wait(ctx, storedAt(r))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		yield(*at.end, nil)
	}
}

// storedAt returns when a record was first stored: for an imported record, in the session
// that it comes from.
func storedAt(r eventlog.Record) time.Time {
	if !r.Origin.Time.IsZero() {
		return r.Origin.Time
	}
	return r.Time
}

// wait waits until the event of a record that was stored at a time is due.
func (p *pace) wait(ctx context.Context, at time.Time) error {
	if p.speed == 0 {
		return nil
	}
	now := time.Now()
	if p.before.IsZero() {
		p.before, p.due, p.looked = at, now, now
		return nil
	}
	if now.Sub(p.due) > replaySlack {
		p.due = now
	}
	pause := float64(at.Sub(p.before)) / p.speed
	p.before, p.due = at, p.due.Add(time.Duration(min(max(pause, 0), float64(p.most))))
	if err := eventlog.Sleep(ctx, p.due.Sub(now)); err != nil {
		return err
	}
	if time.Since(p.looked) < replayLook {
		return nil
	}
	p.looked = time.Now()
	_, err := p.log.Head(ctx, p.session)
	return err
}
