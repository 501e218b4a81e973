package provider

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/helixd/helixd/agentloop/model"
)

// read hands the events of a stream to a. OpenAI's SDK takes the events apart
// for all providers: their framing is the same.
func (c Caller) read(ctx context.Context, res *http.Response, clock *idleClock, a Answer) error {
	events := ssestream.NewDecoder(res)
	defer func() { _ = events.Close() }()
	for {
		clock.start()
		ok := events.Next()
		clock.stop()
		if !ok {
			return c.ended(ctx, events.Err(), a.Complete())
		}
		event := events.Event()
		data := bytes.TrimSpace(event.Data)
		if len(data) == 0 {
			continue
		}
		if done, err := a.Event(event.Type, data); done || err != nil {
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
