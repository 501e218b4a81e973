package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/helixd/helixd/agentloop/model"
)

// maxEvent bounds an event of a stream, and each of its lines, in bytes.
const maxEvent = 32 << 20

// events reads the server-sent events of a stream.
type events struct {
	lines *bufio.Scanner
	kind  string // of the last event
	data  []byte // of the last event, a line feed after each of its lines
	err   error  // of the event that could not be read
}

func newEvents(body io.Reader) *events {
	e := &events{lines: bufio.NewScanner(body)}
	e.lines.Buffer(nil, maxEvent)
	return e
}

// next reads the next event with data. An event that the end cuts off is none.
func (e *events) next() bool {
	e.kind, e.data = "", nil
	for e.lines.Scan() {
		line := e.lines.Bytes()
		if len(line) == 0 {
			if len(e.data) > 0 {
				return true
			}
			e.kind = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.kind = string(value)
		case "data":
			if len(e.data)+len(value) > maxEvent {
				e.err = bufio.ErrTooLong
				return false
			}
			e.data = append(append(e.data, value...), '\n')
		}
	}
	e.err = e.lines.Err()
	return false
}

// read hands the events of a stream to a.
func (c Caller) read(ctx context.Context, res *http.Response, clock *idleClock, a Answer) error {
	defer func() { _ = res.Body.Close() }()
	for e := newEvents(res.Body); ; {
		clock.start()
		ok := e.next()
		clock.stop()
		if !ok {
			return c.ended(ctx, e.err, a.Complete())
		}
		data := bytes.TrimSpace(e.data)
		if len(data) == 0 {
			continue
		}
		if done, err := a.Event(e.kind, data); done || err != nil {
			return err
		}
	}
}

// ended classifies the end of a stream, which may break once the answer is
// complete.
func (c Caller) ended(ctx context.Context, err error, complete bool) error {
	switch {
	case complete && (ctx.Err() == nil || err == nil || isIdle(ctx)):
		return nil
	case ctx.Err() != nil:
		return contextError(ctx)
	case err == nil:
		return &model.Error{
			Code:      model.CodeUnavailable,
			Message:   "the stream ended before the answer was complete",
			Retryable: true,
		}
	case errors.Is(err, bufio.ErrTooLong):
		return Unreadable(err)
	default:
		return c.networkError("", err)
	}
}

// Unreadable is the error of an event that is not what the provider's protocol
// says.
func Unreadable(cause error) error {
	return &model.Error{
		Code:      model.CodeProvider,
		Message:   "the stream holds an event that cannot be read",
		Retryable: true,
		Cause:     cause,
	}
}
