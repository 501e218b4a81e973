package provider

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"

	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/upstream"
)

// refused is the error of an answer whose status says that the call failed.
func (c Caller) refused(ctx context.Context, res *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // its end may be missing: what has come says why it failed
	if ctx.Err() != nil {
		return contextError(ctx)
	}
	e := c.Reported(res.StatusCode, body)
	if wait := upstream.RetryAfter(res.Header); wait <= model.MaxRetryAfter {
		e.RetryAfter = wait
	}
	return e
}

// notStream is the error of an answer that is a JSON body in place of a
// stream, or nil if the answer is a stream. It closes the body of the former.
func (c Caller) notStream(ctx context.Context, res *http.Response) error {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "application/json" {
		return nil
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	switch {
	case ctx.Err() != nil:
		return contextError(ctx)
	case err != nil:
		return c.networkError("", err)
	}
	if reported := c.reportedError(body); reported != nil {
		return reported
	}
	return &model.Error{Code: model.CodeProvider, Message: "the provider answered with JSON instead of a stream"}
}

// reportedError is the error that an answer with a status of success holds, or nil.
func (c Caller) reportedError(body []byte) error {
	var fields struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &fields) == nil && len(fields.Error) > 0 && string(fields.Error) != "null" {
		return c.Reported(0, body)
	}
	return nil
}

func contextError(ctx context.Context) error {
	if isIdle(ctx) {
		return &model.Error{
			Code:      model.CodeTimeout,
			Message:   "the provider stopped in the middle of its answer",
			Retryable: true,
			Cause:     context.Cause(ctx),
		}
	}
	return model.ContextError(ctx)
}

// networkError classifies a request that got no answer, or only a part. Where no
// connection was made it names the model, the host and the setting to look at.
func (c Caller) networkError(rawURL string, err error) error {
	if down := upstream.Explain(rawURL, c.setting("baseURL"), err); down.Reason != "" {
		return &model.Error{Code: model.CodeUnavailable, Message: c.call() + " failed: " + down.Error(), Retryable: true, Cause: down}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &model.Error{
			Code:      model.CodeTimeout,
			Message:   "the provider did not answer in time",
			Retryable: true,
			Cause:     err,
		}
	}
	return &model.Error{
		Code:      model.CodeUnavailable,
		Message:   "no connection to the provider, or it was lost",
		Retryable: true,
		Cause:     err,
	}
}

// at returns a call's error with the host that it is from, the status of its answer and the setting
// to look at. The error of a call that was cancelled stays as it is, and one that is not the adapter's.
func (c Caller) at(host string, err error) error {
	e, ok := err.(*model.Error)
	if !ok || host == "" || errors.Is(err, context.Canceled) {
		return err
	}
	if _, known := errors.AsType[*upstream.Error](e.Cause); known {
		return err
	}
	where := &upstream.Error{Host: host, Status: e.StatusCode, Cause: e.Cause}
	switch {
	case e.Code == model.CodeAuthFailed:
		where.Check = c.setting("apiKey")
	case e.StatusCode == http.StatusNotFound:
		where.Check = c.setting("name") + " and " + c.setting("baseURL")
	case isRedirect(e.StatusCode), e.Code == model.CodeUnavailable, e.Code == model.CodeTimeout:
		where.Check = c.setting("baseURL")
	}
	located := *e
	failed := c.call() + " failed: "
	located.Message = failed + where.Saying(e.Message, model.MaxErrorText-len(failed))
	located.Cause = where
	return &located
}
