package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/memory"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
	"github.com/helixd/helixd/snapshot/backup"
)

// Code is the machine-readable part of an error answer.
type Code string

// Codes of document 004, and helixd's own (facts 4.1).
const (
	CodeNotFound         Code = "NOT_FOUND"
	CodeAlreadyRunning   Code = "ALREADY_RUNNING"
	CodeAlreadyCompleted Code = "ALREADY_COMPLETED"
	CodeInvalidRequest   Code = "INVALID_REQUEST"
	CodeInternalError    Code = "INTERNAL_ERROR"
	CodePayloadTooLarge  Code = "PAYLOAD_TOO_LARGE"
	CodeBusy             Code = "BUSY"          // too much is under way; see Retry-After
	CodeTooMuchWork      Code = "TOO_MUCH_WORK" // to fold a patch
	CodeLengthRequired   Code = "LENGTH_REQUIRED"
	CodeUnauthorized     Code = "UNAUTHORIZED"  // 401, 403, or another status of an AuthError
	CodeUserMismatch     Code = "USER_MISMATCH" // the request names another user than its caller's
	CodeNotImplemented   Code = "NOT_IMPLEMENTED"

	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED"
	CodeSequenceConflict Code = "SEQUENCE_CONFLICT"
	CodeSessionExists    Code = "SESSION_EXISTS" // with other content than is imported
	CodeErasurePending   Code = "ERASURE_PENDING"
	CodeStreamEnded      Code = "STREAM_ENDED"
	CodeCursorAhead      Code = "CURSOR_AHEAD"
	CodeTruncated        Code = "TRUNCATED" // below the retention floor

	CodeIdempotencyMismatch Code = "IDEMPOTENCY_MISMATCH"
	CodeIdempotencyExpired  Code = "IDEMPOTENCY_EXPIRED"

	CodeUnavailable Code = "UNAVAILABLE"
	CodeReadOnly    Code = "READ_ONLY" // the log takes no appends now

	CodeInvalidConfig Code = "INVALID_CONFIG" // of POST /admin/reload; nothing has changed

	CodeWorkspaceWiring Code = "WORKSPACE_WIRING" // this node has not the provider of the session's workspace

	CodeRateLimited   Code = "RATE_LIMITED"   // too many requests a second; Retry-After says when
	CodeQuotaExceeded Code = "QUOTA_EXCEEDED" // a limit of the caller or its tenant; its detail names it

	CodeInterruptDeadline Code = "INTERRUPT_DEADLINE_EXCEEDED"
)

// Errors of this package's own.
var (
	errNoRoute        = errors.New("httpapi: no such route")
	errOtherUser      = errors.New("httpapi: the caller has another user")
	errMethod         = errors.New("httpapi: method not allowed")
	errLengthRequired = errors.New("httpapi: length required")
	errBodyLost       = errors.New("httpapi: body lost")
	errPanicked       = errors.New("httpapi: handler panicked")
	errNotStopped     = errors.New("httpapi: the run has not stopped in time")
	errMismatch       = errors.New("httpapi: idempotency key of another request")
	errKeyExpired     = errors.New("httpapi: idempotency key used too long ago")
	errNoChat         = errors.New("httpapi: no chat here")
	errNoMessage      = errors.New("httpapi: no such message")
	errNoSubscribers  = errors.New("httpapi: no subscribers here")
	errNoRevocation   = errors.New("httpapi: the NATS servers decide about subscribers")
	errNoReadModels   = errors.New("httpapi: no read models here")
	errNoMetrics      = errors.New("httpapi: no metrics here")
	errNoBackup       = errors.New("httpapi: no backups of this log")
	errNoReload       = errors.New("httpapi: nothing to reload here")
)

// sizeError tells that a request, or a part of it, is larger than limit.
type sizeError struct {
	reason string
	limit  int
}

func (e *sizeError) Error() string { return "httpapi: " + e.reason }

// chunkError tells which chunk of a body is not valid, from 0.
type chunkError struct {
	index   int
	problem *eventlog.ValidationError
}

func (e *chunkError) Error() string { return fmt.Sprintf("httpapi: chunk %d: %v", e.index, e.problem) }

// ErrorBody is the body of every error answer.
type ErrorBody struct {
	Error  string `json:"error"`
	Code   Code   `json:"code"`
	Detail any    `json:"detail,omitempty"`
	// Status is the outcome of a submission (facts 2.3).
	Status string `json:"status,omitempty"`
	// RequestID is the answer's X-Request-Id: log lines have it, too.
	RequestID string `json:"requestId,omitempty"`
}

// Details of errors.
type (
	headDetail struct {
		Head uint64 `json:"head"`
	}
	floorDetail struct {
		Floor uint64 `json:"floor"`
	}
	fieldDetail struct {
		Field string `json:"field"`
	}
	chunkDetail struct {
		Index int    `json:"index"`
		Field string `json:"field,omitempty"`
	}
	lineDetail struct {
		Line    int    `json:"line"`
		Field   string `json:"field,omitempty"`
		Records int    `json:"records"` // that are there
	}
	configDetail struct {
		Problems []string `json:"problems"`
	}
	quotaDetail struct {
		Quota string  `json:"quota"` // such as sessions
		Limit float64 `json:"limit"`
	}
	limitDetail struct {
		Limit int `json:"limit"`
	}
)

// failure is a row of the error table.
type failure struct {
	match  func(error) (text string, detail any, ok bool)
	status int
	code   Code
}

// failures says what errors mean to clients; the first match counts.
// Everything else is INTERNAL_ERROR.
var failures = []failure{
	{is(ErrUnauthorized, "authentication is required", nil), 401, CodeUnauthorized},
	{is(ErrForbidden, "not allowed", nil), 403, CodeUnauthorized},
	{is(errOtherUser, "the caller has another user than the request names", nil), 403, CodeUserMismatch},
	{is(errCallerBusy, "the caller has too much under way; nothing was done", nil), 429, CodeBusy},
	{is(errAllBusy, "too much is under way; nothing was done", nil), 503, CodeBusy},
	{as(func(*rateError) (string, any) {
		return "the tenant sends too many requests a second", nil
	}), 429, CodeRateLimited},
	{as(func(e *quota.Exceeded) (string, any) {
		return "over the limit of " + e.Limit + "; no run was begun, and nothing was stored but answers to tool calls", quotaDetail{e.Limit, e.Most}
	}), 429, CodeQuotaExceeded},
	{is(quota.ErrNoTenant, "the session has no tenant, and the caller's tenant has limits; a fork of the session has the caller's tenant", nil), 403, CodeUnauthorized},
	{is(errNoRoute, "there is no such route", nil), 404, CodeNotFound},
	{is(errMethod, "the method is not allowed here", nil), 405, CodeMethodNotAllowed},
	{is(errLengthRequired, "a Content-Length is required", nil), 411, CodeLengthRequired},
	{as(func(e *sizeError) (string, any) {
		return e.reason, limitDetail{e.limit}
	}), 413, CodePayloadTooLarge},
	{is(errBodyLost, "the body did not arrive whole", nil), 400, CodeInvalidRequest},

	{is(eventlog.ErrSessionNotFound, "there is no such session", nil), 404, CodeNotFound},
	{is(agentloop.ErrUnknownAgent, "there is no such agent type", nil), 404, CodeNotFound},
	{is(agentloop.ErrUseResume, "the session's run was interrupted or waits, and can be resumed", "use /resume"), 409, CodeAlreadyRunning},
	{is(agentloop.ErrAlreadyRunning, "the session is running", nil), 409, CodeAlreadyRunning},
	{is(agentloop.ErrAlreadyCompleted, "the session is finished; POST /sessions/{id}/messages begins its next turn", nil), 409, CodeAlreadyCompleted},
	{is(agentloop.ErrOtherUser, "the session has another user", nil), 403, CodeUnauthorized},
	{is(agentloop.ErrNothingToResume, "the session has no run to resume", nil), 400, CodeInvalidRequest},
	{is(agentloop.ErrNothingToConfirm, "no approval is open", nil), 400, CodeInvalidRequest},
	{is(agentloop.ErrCallNotFound, "there is no such tool call", nil), 404, CodeNotFound},
	{is(agentloop.ErrCheckpointNotFound, "the session has no such checkpoint", nil), 404, CodeNotFound},
	{is(agentloop.ErrSessionExists, "a session has the id already", nil), 409, CodeSessionExists},
	{is(errNoChat, "this server has no chat", nil), 501, CodeNotImplemented},
	{is(errNoSubscribers, "this server lets no NATS clients subscribe", nil), 501, CodeNotImplemented},
	{is(errNoRevocation, "this server does not decide who connects to its NATS deployment: the operator of the account revokes its users "+
		"there (nsc revocations add-user, then nsc push)", nil), 501, CodeNotImplemented},
	{is(errNoReadModels, "this server keeps no read models", nil), 501, CodeNotImplemented},
	{is(readmodel.ErrUnavailable, "the read models are being put in order", nil), 503, CodeUnavailable},
	{as(func(e *readmodel.QueryError) (string, any) {
		return e.Field + ": " + e.Reason, fieldDetail{e.Field}
	}), 400, CodeInvalidRequest},
	{is(errNoMemories, "this server keeps no memories", nil), 501, CodeNotImplemented},
	{is(readmodel.ErrForgotten, "the memory was forgotten", nil), 404, CodeNotFound},
	{is(readmodel.ErrNoMemory, "there is no such memory", nil), 404, CodeNotFound},
	{as(func(e *model.Error) (string, any) {
		return "the embedder failed (" + e.Code + "): memories that have no vector stay so for now", nil
	}), 503, CodeUnavailable},
	{is(memory.ErrEmbedderOut, "the embedder failed: memories that have no vector stay so for now", nil), 503, CodeUnavailable},
	{is(errNoMetrics, "this server shows no metrics", nil), 501, CodeNotImplemented},
	{is(errNoBackup, "this log can't be backed up", nil), 501, CodeNotImplemented},
	{is(backup.ErrChanged, "a session was erased or trimmed while it was copied: take the backup again", nil), 503, CodeUnavailable},
	{is(errNoReload, "this server has no configuration to read anew", nil), 501, CodeNotImplemented},
	{as(func(e *ReloadError) (string, any) {
		return "nothing has changed: " + strings.Join(e.Problems, "; "), configDetail{e.Problems}
	}), 409, CodeInvalidConfig},
	{is(agentloop.ErrOtherAgent, "the session has another agent", nil), 409, CodeAlreadyRunning},
	{is(errNoMessage, "the session has no such message", nil), 404, CodeNotFound},
	{is(errNotStopped, "the run has not stopped in time; it will, since the request is kept", nil), 504, CodeInterruptDeadline},

	{as((*submitError).show), 400, CodeInvalidRequest},

	{as(func(e *chunkError) (string, any) {
		return fmt.Sprintf("chunk %d is not valid, %v", e.index, e.problem), chunkDetail{e.index, e.problem.Field}
	}), 400, CodeInvalidRequest},
	{as(func(e *lineError) (string, any) {
		return fmt.Sprintf("line %d can't be imported, %v", e.line, e.problem), lineDetail{e.line, e.problem.Field, e.records}
	}), 400, CodeInvalidRequest},
	{as(func(e *existsError) (string, any) {
		return fmt.Sprintf("the session exists, and where the import has line %d it has something else", e.line),
			lineDetail{Line: e.line, Records: e.records}
	}), 409, CodeSessionExists},
	{as(func(e *eventlog.ValidationError) (string, any) {
		if e.Field == "" {
			return e.Error(), nil
		}
		return e.Error(), fieldDetail{e.Field}
	}), 400, CodeInvalidRequest},
	{as(func(e *eventlog.ConflictError) (string, any) {
		return "the session has gone on", headDetail{e.Head}
	}), 409, CodeSequenceConflict},
	{as(func(e *eventlog.CursorAheadError) (string, any) {
		return "the cursor is beyond the end of the session", headDetail{e.Head}
	}), 416, CodeCursorAhead},
	{as(func(e *eventlog.TrimmedError) (string, any) {
		return "the cursor is below what retention has left; take a snapshot", floorDetail{e.Floor}
	}), 410, CodeTruncated},
	{is(agentloop.ErrKeyUsed, "the idempotency key was used for another message", nil), 409, CodeIdempotencyMismatch},
	{is(errMismatch, "the idempotency key was used for another request", nil), 409, CodeIdempotencyMismatch},
	{is(errKeyExpired, "the idempotency key was used, too long ago to repeat its answer; nothing was appended", nil), 409, CodeIdempotencyExpired},
	{is(eventlog.ErrStreamEnded, "the stream has ended", nil), 409, CodeStreamEnded},
	{is(projector.ErrTooMuchWork, "a patch of the state needs too much work; nothing was appended", "make fewer operations on large arrays and objects"), 422, CodeTooMuchWork},
	{is(eventlog.ErrTooLarge, "a record is too large", nil), 413, CodePayloadTooLarge},

	{as(func(e *agentloop.WorkspaceWiringError) (string, any) {
		return "this node has no provider of the session's workspace: " + e.Provider, nil
	}), 500, CodeWorkspaceWiring},
	{is(workspace.ErrElsewhere, "the session's files are on another node: ask that", nil), 503, CodeUnavailable},
	{is(agentloop.ErrWorkspaceRemains, "not all of the session's files are removed yet, and nothing else is: delete it again", nil), 503, CodeUnavailable},

	{is(agentloop.ErrStopping, "the server is stopping", nil), 503, CodeUnavailable},
	{is(http.ErrServerClosed, "the server is stopping", nil), 503, CodeUnavailable},
	{is(eventlog.ErrOutcomeUnknown, "the log did not answer; the request may have been carried out", nil), 503, CodeUnavailable},
	{is(eventlog.ErrClosed, "the server is stopping", nil), 503, CodeUnavailable},
	{is(eventlog.ErrRefused, "nothing can be written now, see /readyz; nothing was changed", nil), 503, CodeReadOnly},
	{is(eventlog.ErrUnavailable, "the log can't be reached now; nothing was changed", nil), 503, CodeUnavailable},
	{is(eventlog.ErrErasing, "the session is being erased", "delete it again"), 409, CodeErasurePending},
	{is(context.DeadlineExceeded, "the log did not answer in time; the request may have been carried out", nil), 503, CodeUnavailable},
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

// readOnlyRetry is after how many seconds it is worth while to try again what
// was refused.
const readOnlyRetry = "5"

// statusInvalid is the outcome of a submission that is not valid.
const statusInvalid = "validation_error"

// describe returns what err means to a client.
func describe(err error) (status int, body ErrorBody) {
	if own, ok := errors.AsType[*AuthError](err); ok && own.answers() {
		return own.status(), own.body()
	}
	for _, f := range failures {
		if text, detail, ok := f.match(err); ok {
			body = ErrorBody{Error: cut(text, maxErrorText), Code: f.code, Detail: short(detail)}
			if _, ok := errors.AsType[*submitError](err); ok {
				body.Status = statusInvalid
			}
			return f.status, body
		}
	}
	return 500, ErrorBody{Error: "internal error", Code: CodeInternalError}
}

// maxField is the longest field that an error names, in bytes: clients choose
// the names of some.
const maxField = 256

// short cuts the field of a detail.
func short(detail any) any {
	switch d := detail.(type) {
	case fieldDetail:
		d.Field = cut(d.Field, maxField)
		return d
	case chunkDetail:
		d.Field = cut(d.Field, maxField)
		return d
	case lineDetail:
		d.Field = cut(d.Field, maxField)
		return d
	}
	return detail
}

// cut returns the beginning of a text, at most limit bytes of whole characters.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// fail answers with an error. If an answer has begun, it aborts the
// connection, so that the answer does not look whole.
func (s *Server) fail(w *tracker, r *http.Request, err error) {
	if s.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", context.Cause(s.ctx), err) // our end, not the log's
	}
	status, body := describe(err)
	gone := r.Context().Err() != nil && errors.Is(err, context.Canceled)
	// That nothing is written now was logged when that began.
	failed := status >= 500 && status != http.StatusNotImplemented && body.Code != CodeReadOnly && body.Code != CodeBusy
	if (failed || w.begun) && !gone && !errors.Is(err, errPanicked) && !s.keyFailures.known(err, time.Now()) { // a panic has been logged
		s.logger.ErrorContext(r.Context(), "request failed", w.logged("error", err)...)
	}
	if w.begun || gone {
		panic(http.ErrAbortHandler)
	}
	if status == 401 {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	s.logRefusal(r.Context(), w, status, err)
	s.opts.Metrics.overLimit(s.opts.Quota.Label(w.tenant), err)
	if limited, ok := errors.AsType[*rateError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(limited.after.Seconds())))))
	}
	if spent, ok := errors.AsType[*quota.Exceeded](err); ok && spent.After > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(spent.After.Seconds()))))
	}
	switch body.Code {
	case CodeReadOnly:
		w.Header().Set("Retry-After", readOnlyRetry)
	case CodeBusy:
		w.Header().Set("Retry-After", busyRetry)
	}
	body.RequestID = RequestID(r.Context())
	s.writeJSON(w, status, body)
}
