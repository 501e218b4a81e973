package provider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/sse"
)

// maxEvent bounds an event of a stream, and each of its lines, in bytes.
const maxEvent = 32 << 20

// read hands the events of a stream to a.
func (c Caller) read(ctx context.Context, res *http.Response, clock *idleClock, a Answer) error {
	defer func() { _ = res.Body.Close() }()
	for events := sse.NewReader(res.Body, maxEvent); ; {
		clock.start()
		e, err := events.Next()
		clock.stop()
		if err != nil {
			return c.ended(ctx, err, a.Complete())
		}
		data := bytes.TrimSpace(e.Data)
		if len(data) == 0 {
			continue
		}
		if done, err := a.Event(e.Name, data); done || err != nil {
			return err
		}
	}
}

// ended classifies the end of a stream, which may break once the answer is
// complete.
func (c Caller) ended(ctx context.Context, err error, complete bool) error {
	_, tooLong := errors.AsType[*sse.TooLongError](err)
	switch {
	case complete && (ctx.Err() == nil || err == io.EOF || isIdle(ctx)):
		return nil
	case ctx.Err() != nil:
		return contextError(ctx)
	case err == io.EOF:
		return &model.Error{
			Code:      model.CodeUnavailable,
			Message:   "the stream ended before the answer was complete",
			Retryable: true,
		}
	case tooLong:
		return Unreadable(err)
	default:
		return c.networkError("", err)
	}
}

// Unreadable is the error of an event that is not what the provider's protocol
// says.
func Unreadable(cause error) error {
	e := Broken("the stream holds an event that cannot be read")
	e.Cause = cause
	return e
}

// Broken is the error of an answer that is not what the provider's protocol says. The provider may
// do better when it is asked again.
func Broken(message string) *model.Error {
	return &model.Error{Code: model.CodeProvider, Message: message, Retryable: true}
}

// NamelessCall is the error of a call of a tool that is not named.
func NamelessCall() error { return Broken("the provider sent a tool call without a name") }
