package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/helixd/helixd/eventlog"
)

// Event is a server-sent event.
type Event struct {
	ID   Position // zero: none
	Name string   // "": none
	Data []byte   // one line of JSON
	// Raw is sent as it is, in place of the rest: whole events of another protocol.
	Raw []byte
}

// EventWriter writes server-sent events or, with Lines, only their data.
type EventWriter struct {
	request *Request
	w       http.ResponseWriter
	rc      *http.ResponseController
	Lines   bool // NDJSON; an empty line is a heartbeat
	// Closes: if the caller's credentials expire, an event close comes before the end.
	Closes bool
	// Break, if set, returns the last event of a stream that ends before its events do, since
	// they fail, the server closes or the caller's credentials expire; the zero Event is none. It
	// is called after the last event was pulled, and all events that were pulled are sent before.
	Break func() Event
	// Paced: an event is pulled only after the one before is written, since its time
	// depends on that.
	Paced bool
}

// NewEventWriter returns a writer of the events that answer the request.
func (r *Request) NewEventWriter(w http.ResponseWriter) *EventWriter {
	return &EventWriter{request: r, w: w, rc: http.NewResponseController(w)}
}

// Send answers with a session's events until they end or the client leaves.
func (o *EventWriter) Send(ctx context.Context, session string, events iter.Seq2[Event, error]) {
	if err := o.open(); err != nil || o.request.Method == http.MethodHead {
		return // the client has left
	}
	if err := o.pump(ctx, events); err != nil {
		o.request.logger.ErrorContext(o.request.Context(), "stream broke off", eventlog.LogSession, session, "error", err)
	}
}

// open sends the headers.
func (o *EventWriter) open() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if o.Lines {
		h.Set("Content-Type", "application/x-ndjson")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("Connection", "keep-alive")
	h.Set("X-Accel-Buffering", "no")
	o.request.ExtendDeadline(o.rc)
	o.w.WriteHeader(200)
	return o.flush()
}

// append appends an event as it is sent.
func (o *EventWriter) append(b []byte, e Event) []byte {
	if e.Raw != nil {
		return append(b, e.Raw...)
	}
	if o.Lines {
		return append(append(b, e.Data...), '\n')
	}
	if e.ID != (Position{}) {
		b = append(b, "id: "...)
		b = e.ID.append(b)
		b = append(b, '\n')
	}
	if e.Name != "" {
		b = append(b, "event: "...)
		b = append(b, e.Name...)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, e.Data...)
	return append(b, "\n\n"...)
}

func (o *EventWriter) heartbeat() error {
	o.request.ExtendDeadline(o.rc)
	beat := ": heartbeat\n\n"
	if o.Lines {
		beat = "\n"
	}
	if _, err := o.w.Write([]byte(beat)); err != nil {
		return err
	}
	return o.flush()
}

func (o *EventWriter) flush() error { return o.rc.Flush() }

// pump writes events until there are no more, the client leaves or ctx ends. It returns
// the error of events; that a client leaves or the server closes is no error.
//
// A goroutine pulls the events, and has ended when pump returns. Events that become ready
// during a write go out together in the next write and flush.
func (o *EventWriter) pump(ctx context.Context, events iter.Seq2[Event, error]) error {
	ctx, cancel := context.WithCancel(ctx)
	var failed error
	out := newOutbox()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(out.done)
		failed = o.pull(ctx, out, events)
	})
	end := func() {
		cancel()
		wg.Wait()
	}
	defer end()
	stop := func(cut bool) error { // cut: ctx ended first; else events may have failed because of it
		gone := ctx.Err() != nil
		closing := errors.Is(context.Cause(ctx), http.ErrServerClosed)
		expired := errors.Is(context.Cause(ctx), ErrTokenExpired)
		end()
		switch {
		case expired && (cut || failed != nil):
			o.expired(out)
			return nil
		case closing && (cut || failed != nil):
			o.farewell(out)
			return nil
		case gone:
			return nil
		case failed != nil:
			o.last(out, "")
		}
		return failed
	}
	defer o.count()()

	idle := time.NewTimer(o.request.heartbeat)
	defer idle.Stop()
	for {
		over := false
		select {
		case <-out.ready:
			// Let the goroutine add the events that it has ready.
			runtime.Gosched()
		case <-out.done:
			over = true
		case <-idle.C:
			if o.heartbeat() != nil {
				return nil
			}
			idle.Reset(o.request.heartbeat)
			continue
		case <-ctx.Done():
			return stop(true)
		}
		if b := out.take(); len(b) > 0 {
			if o.request.WriteAll(o.w, o.rc, b) != nil || o.flush() != nil {
				return nil
			}
			out.reuse(b)
			idle.Reset(o.request.heartbeat)
		}
		if over {
			return stop(false)
		}
	}
}

// Bounds of the random time after which a client reconnects when the server closes, in
// milliseconds, so that not all clients reconnect at once.
const (
	minReconnect = 100
	maxReconnect = 1000
)

// farewell asks a client to reconnect soon: its stream continues on another node. NDJSON
// has no way to say so.
func (o *EventWriter) farewell(out *outbox) {
	if o.Lines {
		return
	}
	retry := minReconnect + rand.IntN(maxReconnect-minReconnect)
	o.last(out, fmt.Sprintf(": the server is closing\nretry: %d\n\n", retry))
}

// last sends a text, and the event Break if there is one, after the events that wait to be
// written: Break may name the last of them.
func (o *EventWriter) last(out *outbox, text string) {
	b := []byte(text)
	if o.Break != nil {
		b = append(out.take(), text...)
		if e := o.Break(); e.Data != nil {
			b = o.append(b, e)
		}
	}
	if o.request.WriteAll(o.w, o.rc, b) == nil {
		_ = o.flush()
	}
}

// expired says to a client that it needs another token. A comment reaches clients that
// parse the stream themselves; the event also reaches browsers' EventSource, which would
// otherwise reconnect with the same token.
func (o *EventWriter) expired(out *outbox) {
	if o.Lines {
		return
	}
	text := ": TOKEN_EXPIRED: the token has expired; reconnect with another one\n\n"
	if o.Closes {
		text += "event: close\ndata: {\"type\":\"close\",\"code\":\"TOKEN_EXPIRED\"}\n\n"
	}
	o.last(out, text)
}

// pull moves events into out. It turns a panic into an error, since it runs in a separate
// goroutine.
func (o *EventWriter) pull(ctx context.Context, out *outbox, events iter.Seq2[Event, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", ErrPanicked, p, debug.Stack())
		}
	}()
	for e, err := range events {
		if err == nil {
			err = out.add(ctx, o, e)
		}
		if err == nil && o.Paced {
			err = out.taken(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count counts the client in the metrics until done is called.
func (o *EventWriter) count() (done func()) {
	route := OtherRoute
	if t, ok := o.w.(*Tracker); ok {
		route = t.Label()
	}
	return o.request.meter.Streaming(route)
}
