package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	durablelog "github.com/helixd/helixd/agentloop/durable"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/agui"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/inspect"
	"github.com/helixd/helixd/httpapi/internal/operate"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/httpapi/responses"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot/backup"
)

// Errors of the server's own routes.
var (
	errNoRoute   = errors.New("httpapi: no such route")
	errMethod    = errors.New("httpapi: method not allowed")
	errNoMetrics = errors.New("httpapi: no metrics here")
)

// failure is a row of the error table.
type failure struct {
	match  func(error) (text string, detail any, ok bool)
	status int
	code   api.Code
}

// failures maps errors to answers; the first match counts. All other errors are
// INTERNAL_ERROR.
var failures = []failure{
	{is(auth.ErrUnauthorized, "authentication is required", nil), 401, api.CodeUnauthorized},
	{is(auth.ErrForbidden, "not allowed", nil), 403, api.CodeUnauthorized},
	{is(auth.ErrOtherUser, "the caller has another user than the request names", nil), 403, api.CodeUserMismatch},
	{is(web.ErrCallerBusy, "the caller has too much under way; nothing was done", nil), 429, api.CodeBusy},
	{is(web.ErrAllBusy, "too much is under way; nothing was done", nil), 503, api.CodeBusy},
	{as(func(*web.RateError) (string, any) {
		return "the tenant sends too many requests a second", nil
	}), 429, api.CodeRateLimited},
	{as(func(e *quota.Exceeded) (string, any) {
		return "over the limit of " + e.Limit + "; no run began, and only answers to tool calls were stored", api.QuotaDetail{Quota: e.Limit, Limit: e.Most}
	}), 429, api.CodeQuotaExceeded},
	{is(quota.ErrNoTenant, "the session has no tenant, and the caller's tenant has limits; a fork of the session has the caller's tenant", nil), 403, api.CodeUnauthorized},
	{is(errNoRoute, "there is no such route; GET /openapi.json describes all", nil), 404, api.CodeNotFound},
	{is(errMethod, "the method is not allowed here", nil), 405, api.CodeMethodNotAllowed},
	{is(web.ErrLengthRequired, "a Content-Length is required", nil), 411, api.CodeLengthRequired},
	{as(func(e *web.SizeError) (string, any) {
		return e.Reason, api.LimitDetail{Limit: e.Limit}
	}), 413, api.CodePayloadTooLarge},
	{is(web.ErrBodyLost, "the body did not arrive whole", nil), 400, api.CodeInvalidRequest},

	{is(durablelog.ErrNotFound, "there is no such stream", nil), 404, api.CodeNotFound},
	{is(durablelog.ErrGone, "the stream was deleted, or retention has removed what was asked for; offset=now reads on", nil), 410, api.CodeTruncated},
	{is(durablelog.ErrSourceGone, "the stream that is to be forked was deleted", nil), 409, api.CodeStreamConflict},
	{is(durablelog.ErrExists, "the name is taken by a stream with another configuration", nil), 409, api.CodeStreamConflict},
	{is(durablelog.ErrContentType, "the stream has another content type", nil), 409, api.CodeStreamConflict},
	{is(durablelog.ErrClosed, "the stream is closed", nil), 409, api.CodeStreamEnded},
	{is(durablelog.ErrSequence, "Stream-Seq must be greater than the last one", nil), 409, api.CodeSequenceConflict},
	{as(func(e *durablelog.FencedError) (string, any) {
		return fmt.Sprintf("the producer has begun epoch %d", e.Epoch), nil
	}), 403, api.CodeProducerFenced},
	{as(func(e *durablelog.GapError) (string, any) {
		return fmt.Sprintf("the producer's next sequence is %d", e.Expected), nil
	}), 409, api.CodeSequenceConflict},
	{is(durablelog.ErrFirstSeq, "a new epoch begins with Producer-Seq 0", nil), 400, api.CodeInvalidRequest},
	{is(durablelog.ErrForkPoint, "the stream that is to be forked has no such place", nil), 400, api.CodeInvalidRequest},
	{is(durablelog.ErrTooManyForks, "the stream has as many forks as it may have, or is a fork of too many forks", nil), 409, api.CodeStreamConflict},
	{is(durablelog.ErrBusy, "the stream is being deleted", "create it again"), 409, api.CodeErasurePending},

	{is(eventlog.ErrSessionNotFound, "there is no such session", nil), 404, api.CodeNotFound},
	{as(func(e *agentloop.UnknownAgentError) (string, any) {
		return "there is no such agent type; " + e.Advice(), nil
	}), 404, api.CodeNotFound},
	{is(agentloop.ErrUnknownAgent, "there is no such agent type", nil), 404, api.CodeNotFound},
	{is(agentloop.ErrUseResume, "the session's run was interrupted or waits, and can be resumed", "use /resume"), 409, api.CodeAlreadyRunning},
	{is(agentloop.ErrAlreadyRunning, "the session is running", nil), 409, api.CodeAlreadyRunning},
	{is(agentloop.ErrAlreadyCompleted, "the session is finished; POST /sessions/{id}/messages begins its next turn", nil), 409, api.CodeAlreadyCompleted},
	{is(agentloop.ErrOtherUser, "the session has another user", nil), 403, api.CodeUnauthorized},
	{is(agentloop.ErrNothingToResume, "the session has no run to resume", nil), 400, api.CodeInvalidRequest},
	{is(agentloop.ErrNothingToConfirm, "no approval is open", nil), 400, api.CodeInvalidRequest},
	{is(agentloop.ErrCallNotFound, "there is no such tool call", nil), 404, api.CodeNotFound},
	{is(agentloop.ErrNotLast, "the session has gone on since that run", nil), 409, api.CodeAlreadyRunning},
	{is(agentloop.ErrCheckpointNotFound, "the session has no such checkpoint", nil), 404, api.CodeNotFound},
	{is(agentloop.ErrSessionExists, "a session has the id already", nil), 409, api.CodeSessionExists},
	{is(chat.ErrNoChat, "this server has no chat", nil), 501, api.CodeNotImplemented},
	{is(operate.ErrNoSubscribers, "this server lets no NATS clients subscribe", nil), 501, api.CodeNotImplemented},
	{is(operate.ErrNoRevocation, "this server does not decide who connects to its NATS deployment: the operator of the account revokes its users "+
		"there (nsc revocations add-user, then nsc push)", nil), 501, api.CodeNotImplemented},
	{is(inspect.ErrNoReadModels, "this server keeps no read models", nil), 501, api.CodeNotImplemented},
	{is(readmodel.ErrUnavailable, "the read models are being put in order", nil), 503, api.CodeUnavailable},
	{as(func(e *readmodel.QueryError) (string, any) {
		return e.Field + ": " + e.Reason, api.FieldDetail{Field: e.Field}
	}), 400, api.CodeInvalidRequest},
	{is(control.ErrNoMemories, "this server keeps no memories", nil), 501, api.CodeNotImplemented},
	{is(readmodel.ErrForgotten, "the memory was forgotten", nil), 404, api.CodeNotFound},
	{is(readmodel.ErrNoMemory, "there is no such memory", nil), 404, api.CodeNotFound},
	{as(func(e *model.Error) (string, any) {
		return "the embedder failed (" + e.Code + "): memories that have no vector stay so for now", nil
	}), 503, api.CodeUnavailable},
	{is(memory.ErrEmbedderOut, "the embedder failed: memories that have no vector stay so for now", nil), 503, api.CodeUnavailable},
	{is(errNoMetrics, "this server shows no metrics", nil), 501, api.CodeNotImplemented},
	{is(operate.ErrNoBackup, "this log can't be backed up", nil), 501, api.CodeNotImplemented},
	{is(backup.ErrChanged, "a session was erased or trimmed while it was copied: take the backup again", nil), 503, api.CodeUnavailable},
	{is(operate.ErrNoReload, "this server has no configuration to read again", nil), 501, api.CodeNotImplemented},
	{as(func(e *ReloadError) (string, any) {
		return "nothing has changed: " + strings.Join(e.Problems, "; "), api.ConfigDetail{Problems: e.Problems}
	}), 409, api.CodeInvalidConfig},
	{is(agentloop.ErrOtherAgent, "the session has another agent", nil), 409, api.CodeAlreadyRunning},
	{is(chat.ErrNoMessage, "the session has no such message", nil), 404, api.CodeNotFound},
	{is(control.ErrNotStopped, "the run has not stopped in time; it will, since the request is kept", nil), 504, api.CodeInterruptDeadline},

	{as((*control.SubmitError).Show), 400, api.CodeInvalidRequest},

	{as(func(e *control.ChunkError) (string, any) {
		return fmt.Sprintf("chunk %d is not valid, %v", e.Index, e.Problem), api.ChunkDetail{Index: e.Index, Field: e.Problem.Field}
	}), 400, api.CodeInvalidRequest},
	{as(func(e *control.LineError) (string, any) {
		return fmt.Sprintf("line %d can't be imported, %v", e.Line, e.Problem), api.LineDetail{Line: e.Line, Field: e.Problem.Field, Records: e.Records}
	}), 400, api.CodeInvalidRequest},
	{as(func(e *control.ExistsError) (string, any) {
		return fmt.Sprintf("the session exists, and differs from the import at line %d", e.Line),
			api.LineDetail{Line: e.Line, Records: e.Records}
	}), 409, api.CodeSessionExists},
	{as(func(e *eventlog.ValidationError) (string, any) {
		if e.Field == "" {
			return e.Error(), nil
		}
		return e.Error(), api.FieldDetail{Field: e.Field}
	}), 400, api.CodeInvalidRequest},
	{as(func(e *eventlog.ConflictError) (string, any) {
		return "the session has gone on", api.HeadDetail{Head: e.Head}
	}), 409, api.CodeSequenceConflict},
	{as(func(e *eventlog.CursorAheadError) (string, any) {
		return fmt.Sprintf("the cursor is beyond the end of the session, which is %d", e.Head), api.HeadDetail{Head: e.Head}
	}), 416, api.CodeCursorAhead},
	{as(func(e *eventlog.TrimmedError) (string, any) {
		return "the cursor is below what retention has left; take a snapshot", api.FloorDetail{Floor: e.Floor}
	}), 410, api.CodeTruncated},
	{is(agentloop.ErrKeyUsed, "the idempotency key was used for another message", nil), 409, api.CodeIdempotencyMismatch},
	{is(control.ErrMismatch, "the idempotency key was used for another request", nil), 409, api.CodeIdempotencyMismatch},
	{is(control.ErrKeyExpired, "the idempotency key was used, too long ago to repeat its answer; nothing was appended", nil), 409, api.CodeIdempotencyExpired},
	{is(eventlog.ErrStreamEnded, "the stream has ended", nil), 409, api.CodeStreamEnded},
	{is(projector.ErrTooMuchWork, "a patch of the state needs too much work; nothing was appended", "make fewer operations on large arrays and objects"), 422, api.CodeTooMuchWork},
	{is(eventlog.ErrTooLarge, "a record is too large", nil), 413, api.CodePayloadTooLarge},

	{as(func(e *agentloop.WorkspaceWiringError) (string, any) {
		return "this node has no provider of the session's workspace: " + e.Provider, nil
	}), 500, api.CodeWorkspaceWiring},
	{is(inspect.ErrNoFolder, "the session's workspace has no such folder", nil), 404, api.CodeNotFound},
	{is(workspace.ErrElsewhere, "the session's files are on another node: ask that", nil), 503, api.CodeUnavailable},
	{is(agentloop.ErrWorkspaceTimeout, "the session's files did not answer in time", nil), 503, api.CodeUnavailable},
	{is(agentloop.ErrWorkspaceRemains, "some of the session's files could not be removed yet, so nothing else was: delete it again", nil), 503, api.CodeUnavailable},

	{is(agentloop.ErrStopping, "the server is stopping", nil), 503, api.CodeUnavailable},
	{is(http.ErrServerClosed, "the server is stopping", nil), 503, api.CodeUnavailable},
	{is(eventlog.ErrOutcomeUnknown, "the log did not answer; the request may have been carried out", nil), 503, api.CodeUnavailable},
	{is(eventlog.ErrClosed, "the server is stopping", nil), 503, api.CodeUnavailable},
	{is(eventlog.ErrRefused, "nothing can be written now, see /readyz; nothing was changed", nil), 503, api.CodeReadOnly},
	{is(eventlog.ErrUnavailable, "the log can't be reached now; nothing was changed", nil), 503, api.CodeUnavailable},
	{is(eventlog.ErrErasing, "the session is being erased", "delete it again"), 409, api.CodeErasurePending},
	{is(context.DeadlineExceeded, "the log did not answer in time; the request may have been carried out", nil), 503, api.CodeUnavailable},
}

func is(target error, text string, detail any) func(error) (string, any, bool) {
	return func(err error) (string, any, bool) { return text, detail, errors.Is(err, target) }
}

func as[T error](show func(T) (string, any)) func(error) (string, any, bool) {
	return func(err error) (string, any, bool) {
		e, ok := errors.AsType[T](err)
		if !ok {
			return "", nil, false
		}
		text, detail := show(e)
		return text, detail, true
	}
}

// readOnlyRetry is the Retry-After of READ_ONLY, in seconds.
const readOnlyRetry = "5"

// statusInvalid is the outcome of a submission that is not valid.
const statusInvalid = "validation_error"

// describe returns the answer to an error.
func describe(err error) (status int, body api.ErrorBody) {
	if own, ok := errors.AsType[*auth.Refusal](err); ok && own.Answers() {
		return own.StatusCode(), refusalBody(own)
	}
	if p, ok := errors.AsType[*responses.Problem](err); ok {
		return p.Status, api.ErrorBody{Error: p.Message, Code: api.CodeInvalidRequest}
	}
	if p, ok := errors.AsType[*agui.Problem](err); ok {
		return p.Status, api.ErrorBody{Error: p.Message, Code: p.Code}
	}
	for _, f := range failures {
		if text, detail, ok := f.match(err); ok {
			body = api.ErrorBody{Error: web.Cut(text, control.MaxErrorText), Code: f.code, Detail: short(detail)}
			if _, ok := errors.AsType[*control.SubmitError](err); ok {
				body.Status = statusInvalid
			}
			return f.status, body
		}
	}
	return 500, api.ErrorBody{Error: "internal error", Code: api.CodeInternalError}
}

// refusalBody returns the answer to an authenticator's own refusal.
func refusalBody(e *auth.Refusal) api.ErrorBody {
	code, text := api.CodeUnauthorized, "not allowed"
	switch status := e.StatusCode(); {
	case status == http.StatusUnauthorized:
		text = "authentication is required"
	case status == http.StatusNotFound: // for callers who must not learn what there is
		code, text = api.CodeNotFound, "not found"
	case status == http.StatusServiceUnavailable:
		code, text = api.CodeUnavailable, "authentication is not available"
	case status >= 500:
		code, text = api.CodeInternalError, "internal error"
	}
	return api.ErrorBody{Error: web.Cut(strings.ToValidUTF8(cmp.Or(e.Message, text), ""), control.MaxErrorText), Code: code}
}

// maxField is the longest field name in an error, in bytes: some names come from clients.
const maxField = 256

// short cuts the field of a detail.
func short(detail any) any {
	switch d := detail.(type) {
	case api.FieldDetail:
		d.Field = web.Cut(d.Field, maxField)
		return d
	case api.ChunkDetail:
		d.Field = web.Cut(d.Field, maxField)
		return d
	case api.LineDetail:
		d.Field = web.Cut(d.Field, maxField)
		return d
	}
	return detail
}

// fail answers with an error. If the answer has begun, it aborts the connection, so that
// the client can't take the answer for complete.
func (s *Server) fail(w *web.Tracker, r *http.Request, err error) {
	if closed := s.gate.Closed(); closed != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", closed, err) // our end, not the log's
	}
	status, body := describe(err)
	gone := r.Context().Err() != nil && errors.Is(err, context.Canceled)
	// READ_ONLY was logged when it began.
	failed := status >= 500 && status != http.StatusNotImplemented && body.Code != api.CodeReadOnly && body.Code != api.CodeBusy
	if (failed || w.Begun) && !gone && !errors.Is(err, web.ErrPanicked) && !s.keyFailures.known(err, time.Now()) { // a panic has been logged
		s.opts.Logger.ErrorContext(r.Context(), "request failed", w.Logged("error", err)...)
	}
	if w.Begun || gone {
		panic(http.ErrAbortHandler)
	}
	if status == 401 {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	s.logRefusal(r.Context(), w, status, err)
	s.opts.Metrics.overLimit(s.opts.Quota.Label(w.Tenant), err)
	if limited, ok := errors.AsType[*web.RateError](err); ok {
		w.Header().Set(api.HeaderRetryAfter, strconv.Itoa(max(1, int(math.Ceil(limited.After.Seconds())))))
	}
	if spent, ok := errors.AsType[*quota.Exceeded](err); ok && spent.After > 0 {
		w.Header().Set(api.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(spent.After.Seconds()))))
	}
	switch body.Code {
	case api.CodeReadOnly:
		w.Header().Set(api.HeaderRetryAfter, readOnlyRetry)
	case api.CodeBusy:
		w.Header().Set(api.HeaderRetryAfter, web.BusyRetry)
	}
	if p := protocolOf(r.URL.Path); p != nil && p.failure != nil && s.spoken(r.URL.Path) {
		s.gate.WriteJSON(w, status, p.failure(err, status, body))
		return
	}
	body.RequestID = RequestID(r.Context())
	s.gate.WriteJSON(w, status, body)
}
