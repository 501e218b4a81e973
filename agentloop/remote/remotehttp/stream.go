package remotehttp

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/helixd/helixd/agentloop/model/sse"
	"github.com/helixd/helixd/agentloop/remote"
)

// EventStream is the media type of server-sent events.
const EventStream = "text/event-stream"

// RawEvent is a server-sent event.
type RawEvent = sse.Event

// Stream implements [remote.Transport]. Connecting is retried; the caller decides
// what to do if an open connection breaks. The connection is closed
// when the iteration ends.
func (h *Transport) Stream(ctx context.Context, sessionID string, from uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		x, err := h.connect(ctx, sessionID, from)
		if err != nil {
			yield(nil, err)
			return
		}
		defer x.Close()
		x.Events()(yield)
	}
}

// connect opens the stream after sequence from.
func (h *Transport) connect(ctx context.Context, sessionID string, from uint64) (*Response, error) {
	var stream *Response
	err := h.retry(ctx, StreamRequest(sessionID, from), func(x *Response) error {
		if !x.Is(EventStream) {
			x.Close()
			return fmt.Errorf("%w: it is not an event stream", remote.ErrMalformed)
		}
		stream = x
		return nil
	})
	return stream, err
}

// StreamRequest asks for a session's events after sequence from.
func StreamRequest(sessionID string, from uint64) Request {
	return Request{
		Method: http.MethodGet, Route: "sse", Accept: EventStream,
		Query: url.Values{"sessionId": {sessionID}, "fromSequence": {strconv.FormatUint(from, 10)}},
	}
}

// Events yields the events of the stream in the body, to the last one. Without one, an error is last; see [remote.Transport].
func (x *Response) Events() iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		for raw, err := range x.RawEvents() {
			var e remote.Event
			if err == nil {
				e, err = decodeEvent(raw, x.hide)
			}
			if err == nil && e == nil {
				continue // of a kind that is not known
			}
			if !yield(e, err) || err != nil || remote.IsLast(e) {
				return
			}
		}
	}
}

// RawEvents yields the server-sent events that the body is. An error is last:
// [ErrStreamDropped] also at the body's end, as no event says by itself that
// it is the last one.
func (x *Response) RawEvents() iter.Seq2[RawEvent, error] {
	return func(yield func(RawEvent, error) bool) {
		for events := sse.NewReader(x, maxAnswer); ; {
			err := context.Cause(x.ctx)
			var e RawEvent
			if err == nil {
				if e, err = events.Next(); err != nil {
					err = x.lost(remote.ErrStreamDropped, err)
				}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
