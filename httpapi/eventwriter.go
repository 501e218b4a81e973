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
	"strconv"
	"sync"
	"sync/atomic"
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
	const before, between = `{"type":"chunk","chunk":`, `,"sequence":`
	data := bytes.NewBuffer(make([]byte, 0, len(before)+len(r.Payload)+len(between)+len("18446744073709551615}")))
	data.WriteString(before)
	if json.Compact(data, r.Payload) != nil {
		return event{}, false
	}
	data.WriteString(between)
	data.Write(strconv.AppendUint(data.AvailableBuffer(), r.Sequence, 10))
	data.WriteByte('}')
	return event{id: position{sequence: r.Sequence}, name: "chunk", data: data.Bytes()}, true
}

// liveEvents keeps the events of the last live chunks: all clients of a session get the
// same one, and it is made once for them.
type liveEvents [64]atomic.Pointer[liveEvent]

type liveEvent struct {
	record eventlog.Record
	event  event
}

// maxLiveEvent is up to what size of a payload, in bytes, an event is kept.
const maxLiveEvent = 4 << 10

// chunkEvent is chunkEvent for a record that others get as well: the log hands the same
// payload to all who follow the session.
func (l *liveEvents) chunkEvent(r eventlog.Record) (event, bool) {
	if r.Kind != eventlog.KindChunk || len(r.Payload) == 0 || len(r.Payload) > maxLiveEvent {
		return chunkEvent(r)
	}
	at := &l[r.Sequence%uint64(len(l))]
	if had := at.Load(); had != nil && had.record.Sequence == r.Sequence &&
		len(had.record.Payload) == len(r.Payload) && &had.record.Payload[0] == &r.Payload[0] {
		return had.event, true
	}
	e, ok := chunkEvent(r)
	if ok {
		at.Store(&liveEvent{r, e})
	}
	return e, ok
}

// eventWriter writes server-sent events or, as lines, their data alone.
type eventWriter struct {
	s     *Server
	w     http.ResponseWriter
	rc    *http.ResponseController
	lines bool // NDJSON; an empty line is a heartbeat
	// closes: an event close comes before the server ends the stream of a caller
	// whose credentials have expired.
	closes bool
	// paced: an event is pulled when the one before is written, since its time
	// depends on that.
	paced bool
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

// append appends what is sent of an event.
func (o *eventWriter) append(b []byte, e event) []byte {
	if o.lines {
		return append(append(b, e.data...), '\n')
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
	return append(b, "\n\n"...)
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
// The events are pulled by a goroutine that is gone when pump returns. Those that
// are ready while the client is written to go in one write and one flush.
func (o *eventWriter) pump(ctx context.Context, heartbeat time.Duration, events iter.Seq2[event, error]) error {
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
	for {
		over := false
		select {
		case <-out.ready:
			// Lets the goroutine bring the next events, if it has some.
			runtime.Gosched()
		case <-out.done:
			over = true
		case <-idle.C:
			if o.heartbeat() != nil {
				return nil
			}
			idle.Reset(heartbeat)
			continue
		case <-ctx.Done():
			return stop(true)
		}
		if b := out.take(); len(b) > 0 {
			if o.s.write(o.w, o.rc, b) != nil || o.flush() != nil {
				return nil
			}
			out.reuse(b)
			idle.Reset(heartbeat)
		}
		if over {
			return stop(false)
		}
	}
}

// Bounds of an outbox, in bytes.
const (
	outboxFull = 32 << 10 // from here on no more events are pulled
	outboxKeep = 2 << 10  // what room an idle stream may keep
)

// outbox has what is to be written to a client next.
type outbox struct {
	ready chan struct{} // there is something
	room  chan struct{} // there is room again
	done  chan struct{} // closed when there will be no more

	mu    sync.Mutex
	buf   []byte
	spare []byte // written, to be used again
}

func newOutbox() *outbox {
	return &outbox{ready: make(chan struct{}, 1), room: make(chan struct{}, 1), done: make(chan struct{})}
}

// add appends an event, and waits while there is no room. The error is ctx's.
func (b *outbox) add(ctx context.Context, o *eventWriter, e event) error {
	for {
		b.mu.Lock()
		if len(b.buf) < outboxFull {
			b.buf = o.append(b.buf, e)
			b.mu.Unlock()
			signal(b.ready)
			return nil
		}
		b.mu.Unlock()
		if err := b.waitRoom(ctx); err != nil {
			return err
		}
	}
}

// taken waits until the last event is about to be written.
func (b *outbox) taken(ctx context.Context) error {
	for {
		b.mu.Lock()
		n := len(b.buf)
		b.mu.Unlock()
		if n == 0 {
			return nil
		}
		if err := b.waitRoom(ctx); err != nil {
			return err
		}
	}
}

func (b *outbox) waitRoom(ctx context.Context) error {
	select {
	case <-b.room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take returns what is to be written.
func (b *outbox) take() []byte {
	b.mu.Lock()
	taken := b.buf
	b.buf, b.spare = b.spare, nil
	b.mu.Unlock()
	signal(b.room)
	return taken
}

// reuse gives back what take has returned. An idle stream holds little of it.
func (b *outbox) reuse(written []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if cap(written) <= outboxKeep || len(b.buf) > 0 && cap(written) <= 2*outboxFull {
		b.spare = written[:0]
	}
	if len(b.buf) == 0 && cap(b.buf) > outboxKeep {
		b.buf = nil
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
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

// pull puts events into out. A panic is an error: nobody else would catch it.
func (o *eventWriter) pull(ctx context.Context, out *outbox, events iter.Seq2[event, error]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanicked, p, debug.Stack())
		}
	}()
	for e, err := range events {
		if err == nil {
			err = out.add(ctx, o, e)
		}
		if err == nil && o.paced {
			err = out.taken(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
