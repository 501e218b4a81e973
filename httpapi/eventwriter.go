package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
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

// event is a server-sent event.
type event struct {
	id   position // zero: none
	name string   // "": none
	data []byte   // one line of JSON
}

// chunkEvent returns a chunk record as an event. The payload is not decoded:
// kinds that this version does not know go through. What is not JSON at all
// does not; white space between tokens is dropped, since a line break would
// end the data.
func chunkEvent(r eventlog.Record) (event, bool) {
	if r.Kind != eventlog.KindChunk {
		return event{}, false
	}
	var data bytes.Buffer
	data.Grow(len(r.Payload) + 64)
	data.WriteString(`{"type":"chunk","chunk":`)
	if json.Compact(&data, r.Payload) != nil {
		return event{}, false
	}
	fmt.Fprintf(&data, `,"sequence":%d}`, r.Sequence)
	return event{id: position{sequence: r.Sequence}, name: "chunk", data: data.Bytes()}, true
}

// eventWriter writes server-sent events or, as lines, their data alone.
type eventWriter struct {
	s     *Server
	w     http.ResponseWriter
	rc    *http.ResponseController
	buf   []byte
	lines bool // NDJSON; an empty line is a heartbeat
	// closes: an event close comes before the server ends the stream of a caller
	// whose credentials have expired.
	closes bool
}

func (s *Server) newEventWriter(w http.ResponseWriter) *eventWriter {
	return &eventWriter{s: s, w: w, rc: http.NewResponseController(w)}
}

// open sends the headers.
func (o *eventWriter) open() error {
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream")
	if o.lines {
		h.Set("Content-Type", "application/x-ndjson")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("Connection", "keep-alive")
	h.Set("X-Accel-Buffering", "no")
	o.s.extendDeadline(o.rc)
	o.w.WriteHeader(200)
	return o.flush()
}

func (o *eventWriter) write(e event) error {
	b := o.buf[:0]
	if o.lines {
		o.buf = append(append(b, e.data...), '\n')
		return o.s.write(o.w, o.rc, o.buf)
	}
	if e.id != (position{}) {
		b = append(b, "id: "...)
		b = e.id.append(b)
		b = append(b, '\n')
	}
	if e.name != "" {
		b = append(b, "event: "...)
		b = append(b, e.name...)
		b = append(b, '\n')
	}
	b = append(b, "data: "...)
	b = append(b, e.data...)
	b = append(b, "\n\n"...)
	o.buf = b
	return o.s.write(o.w, o.rc, b)
}

func (o *eventWriter) heartbeat() error {
	o.s.extendDeadline(o.rc)
	beat := ": heartbeat\n\n"
	if o.lines {
		beat = "\n"
	}
	if _, err := o.w.Write([]byte(beat)); err != nil {
		return err
	}
	return o.flush()
}

func (o *eventWriter) flush() error { return o.rc.Flush() }

// pump writes events until there are no more, the client takes no more or ctx
// ends. The error is that of events; a client that leaves and a server that
// closes are none.
//
// The events are pulled, one at a time, by a goroutine that is gone when pump
// returns. What is written is flushed when the next event is not at hand.
func (o *eventWriter) pump(ctx context.Context, heartbeat time.Duration, events iter.Seq2[event, error]) error {
	ctx, cancel := context.WithCancel(ctx)
	var failed error
	feed := make(chan event)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(feed)
		failed = pull(ctx, feed, events)
	})
	end := func() {
		cancel()
		wg.Wait()
	}
	defer end()
	stop := func(cut bool) error { // events may have noticed first that ctx has ended
		gone := ctx.Err() != nil
		closing := errors.Is(context.Cause(ctx), http.ErrServerClosed)
		expired := errors.Is(context.Cause(ctx), errTokenExpired)
		end()
		switch {
		case expired && (cut || failed != nil):
			o.expired()
			return nil
		case closing && (cut || failed != nil):
			o.farewell()
			return nil
		case gone:
			return nil
		}
		return failed
	}
	defer o.s.opts.Metrics.streaming(o.w)()

	idle := time.NewTimer(heartbeat)
	defer idle.Stop()
	pending := false // written and not flushed
	for {
		if pending {
			// Lets the goroutine bring the next event, if it has one.
			// Without it, every second event of a long catch-up is a flush:
			// 20 times as many (measured), and a fifth slower.
			runtime.Gosched()
			select {
			case e, ok := <-feed:
				if !ok {
					return stop(false)
				}
				if o.write(e) != nil {
					return nil
				}
				continue
			default:
			}
			if o.flush() != nil {
				return nil
			}
			pending = false
			idle.Reset(heartbeat)
		}
		select {
		case e, ok := <-feed:
			if !ok {
				return stop(false)
			}
			if o.write(e) != nil {
				return nil
			}
			pending = true
		case <-idle.C:
			if o.heartbeat() != nil {
				return nil
			}
			idle.Reset(heartbeat)
		case <-ctx.Done():
			return stop(true)
		}
	}
}

// Where a client shall be back that was sent away, in milliseconds: all would
// come at once else.
const (
	minReconnect = 100
	maxReconnect = 1000
)

// farewell has a client come back soon: its stream goes on elsewhere. One that
// does not take it finds out by itself. Lines have no words for it.
func (o *eventWriter) farewell() {
	if o.lines {
		return
	}
	retry := minReconnect + rand.IntN(maxReconnect-minReconnect)
	if o.s.write(o.w, o.rc, fmt.Appendf(nil, ": the server is closing\nretry: %d\n\n", retry)) == nil {
		_ = o.flush()
	}
}

// expired tells a client that it needs another token to go on. A comment reaches
// those that read the stream themselves, the event also browsers' EventSource,
// which would otherwise reconnect with the same token.
func (o *eventWriter) expired() {
	if o.lines {
		return
	}
	text := ": TOKEN_EXPIRED: the token has expired; reconnect with another one\n\n"
	if o.closes {
		text += "event: close\ndata: {\"type\":\"close\",\"code\":\"TOKEN_EXPIRED\"}\n\n"
	}
	if o.s.write(o.w, o.rc, []byte(text)) == nil {
		_ = o.flush()
	}
}

// pull sends events to feed. A panic is an error: nobody else would catch it.
func pull(ctx context.Context, feed chan<- event, events iter.Seq2[event, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanicked, p, debug.Stack())
		}
	}()
	for e, err := range events {
		if err != nil {
			return err
		}
		select {
		case feed <- e:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
