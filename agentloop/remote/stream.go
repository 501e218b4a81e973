package remote

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
)

// eventStream is the media type of server-sent events.
const eventStream = "text/event-stream"

// Stream implements [Transport]. Connecting is retried; what happens to a
// connection that stands is the caller's to decide. The connection is closed
// when the iteration ends.
func (h *HTTP) Stream(ctx context.Context, sessionID string, from uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		x, err := h.connect(ctx, sessionID, from)
		if err != nil {
			yield(nil, err)
			return
		}
		defer x.close()
		events := newSSEReader(x, maxAnswer)
		for {
			e, err := x.event(events)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) || isLast(e) {
				return
			}
		}
	}
}

// connect opens the stream behind sequence from.
func (h *HTTP) connect(ctx context.Context, sessionID string, from uint64) (*exchange, error) {
	r := request{
		method: http.MethodGet, route: "sse", accept: eventStream,
		query: url.Values{"sessionId": {sessionID}, "fromSequence": {strconv.FormatUint(from, 10)}},
	}
	var stream *exchange
	err := h.retry(ctx, r, func(x *exchange) error {
		media, _, _ := mime.ParseMediaType(x.res.Header.Get("Content-Type"))
		if media != eventStream {
			x.close()
			return fmt.Errorf("%w: it is not an event stream", ErrMalformed)
		}
		stream = x
		return nil
	})
	return stream, err
}

// event returns the next event of a kind that is known.
func (x *exchange) event(events *sseReader) (Event, error) {
	for {
		if err := context.Cause(x.ctx); err != nil {
			return nil, err
		}
		raw, err := events.next()
		switch {
		case errors.Is(err, ErrTooLarge):
			return nil, err
		case err != nil:
			return nil, x.lost(ErrStreamDropped, err)
		}
		if e, err := decodeEvent(raw, x.hide); e != nil || err != nil {
			return e, err
		}
	}
}
