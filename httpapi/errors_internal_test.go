package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/projector"
)

func TestErrorTable(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		code   api.Code
		detail any
	}{
		{auth.ErrUnauthorized, 401, "UNAUTHORIZED", nil},
		{auth.ErrForbidden, 403, "UNAUTHORIZED", nil},
		{&auth.Refusal{Message: "sign in"}, 401, "UNAUTHORIZED", nil},
		{&auth.Refusal{Status: 403, Message: "read only"}, 403, "UNAUTHORIZED", nil},
		{&auth.Refusal{Status: 404, Message: "hidden"}, 404, "NOT_FOUND", nil},
		{&auth.Refusal{Status: 429, Message: "slow down"}, 429, "UNAUTHORIZED", nil},
		{&auth.Refusal{Status: 502, Message: "no key server"}, 502, "INTERNAL_ERROR", nil},
		{&auth.Refusal{Status: 503, Message: "no key server"}, 503, "UNAVAILABLE", nil},
		{&auth.Refusal{Status: 302, Message: "secret"}, 500, "INTERNAL_ERROR", nil},
		{web.ErrCallerBusy, 429, "BUSY", nil},
		{web.ErrAllBusy, 503, "BUSY", nil},
		{errNoRoute, 404, "NOT_FOUND", nil},
		{errMethod, 405, "METHOD_NOT_ALLOWED", nil},
		{web.ErrLengthRequired, 411, "LENGTH_REQUIRED", nil},
		{&web.SizeError{Reason: "the body is too large", Limit: 7}, 413, "PAYLOAD_TOO_LARGE", api.LimitDetail{Limit: 7}},
		{web.ErrBodyLost, 400, "INVALID_REQUEST", nil},
		{eventlog.ErrSessionNotFound, 404, "NOT_FOUND", nil},
		{agentloop.ErrUnknownAgent, 404, "NOT_FOUND", nil},
		{&agentloop.UnknownAgentError{AgentType: "x", Known: []string{"a"}}, 404, "NOT_FOUND", nil},
		{agentloop.ErrUseResume, 409, "ALREADY_RUNNING", "use /resume"},
		{agentloop.ErrAlreadyRunning, 409, "ALREADY_RUNNING", nil},
		{agentloop.ErrAlreadyCompleted, 409, "ALREADY_COMPLETED", nil},
		{agentloop.ErrNothingToResume, 400, "INVALID_REQUEST", nil},
		{agentloop.ErrNothingToConfirm, 400, "INVALID_REQUEST", nil},
		{agentloop.ErrCallNotFound, 404, "NOT_FOUND", nil},
		{agentloop.ErrCheckpointNotFound, 404, "NOT_FOUND", nil},
		{agentloop.ErrSessionExists, 409, "SESSION_EXISTS", nil},
		{control.ErrNotStopped, 504, "INTERRUPT_DEADLINE_EXCEEDED", nil},
		{&control.SubmitError{Problem: &eventlog.ValidationError{Field: "f", Reason: "is odd"}, Verbose: false}, 400, "INVALID_REQUEST", nil},
		{&control.SubmitError{Problem: &eventlog.ValidationError{Field: "f", Reason: "is odd"}, Verbose: true}, 400, "INVALID_REQUEST", api.FieldDetail{Field: "f"}},
		{&control.SubmitError{Problem: &eventlog.ValidationError{Reason: "is odd"}, Verbose: true}, 400, "INVALID_REQUEST", nil},
		{&control.ChunkError{Index: 3, Problem: &eventlog.ValidationError{Field: "f", Reason: "is odd"}}, 400, "INVALID_REQUEST", api.ChunkDetail{Index: 3, Field: "f"}},
		{&control.LineError{Line: 3, Records: 2, Problem: &eventlog.ValidationError{Field: "f", Reason: "is odd"}}, 400, "INVALID_REQUEST", api.LineDetail{Line: 3, Field: "f", Records: 2}},
		{&control.ExistsError{Line: 3, Records: 2}, 409, "SESSION_EXISTS", api.LineDetail{Line: 3, Field: "", Records: 2}},
		{control.ErrMismatch, 409, "IDEMPOTENCY_MISMATCH", nil},
		{control.ErrKeyExpired, 409, "IDEMPOTENCY_EXPIRED", nil},
		{&eventlog.ValidationError{Field: "f", Reason: "is odd"}, 400, "INVALID_REQUEST", api.FieldDetail{Field: "f"}},
		{&eventlog.ValidationError{Reason: "is odd"}, 400, "INVALID_REQUEST", nil},
		{&eventlog.ConflictError{Head: 7}, 409, "SEQUENCE_CONFLICT", api.HeadDetail{Head: 7}},
		{&eventlog.CursorAheadError{Cursor: 9, Head: 7}, 416, "CURSOR_AHEAD", api.HeadDetail{Head: 7}},
		{&eventlog.TrimmedError{Cursor: 3, Floor: 7}, 410, "TRUNCATED", api.FloorDetail{Floor: 7}},
		{&web.RateError{After: time.Second}, 429, "RATE_LIMITED", nil},
		{&quota.Exceeded{Limit: quota.Streams, Most: 3}, 429, "QUOTA_EXCEEDED", api.QuotaDetail{Quota: "streams", Limit: 3}},
		{quota.ErrNoTenant, 403, "UNAUTHORIZED", nil},
		{eventlog.ErrStreamEnded, 409, "STREAM_ENDED", nil},
		{eventlog.ErrTooLarge, 413, "PAYLOAD_TOO_LARGE", nil},
		{fmt.Errorf("patch: %w", projector.ErrTooMuchWork), 422, "TOO_MUCH_WORK", "make fewer operations on large arrays and objects"},
		{agentloop.ErrStopping, 503, "UNAVAILABLE", nil},
		{http.ErrServerClosed, 503, "UNAVAILABLE", nil},
		{eventlog.ErrClosed, 503, "UNAVAILABLE", nil},
		{eventlog.ErrOutcomeUnknown, 503, "UNAVAILABLE", nil},
		{fmt.Errorf("%w: full", eventlog.ErrRefused), 503, "READ_ONLY", nil},
		{eventlog.ErrErasing, 409, "ERASURE_PENDING", "delete it again"},
		{fmt.Errorf("%w: %w", eventlog.ErrOutcomeUnknown, eventlog.ErrErasing), 503, "UNAVAILABLE", nil},
		{eventlog.ErrIncomplete, 500, "INTERNAL_ERROR", nil},
		{eventlog.ErrSuperseded, 500, "INTERNAL_ERROR", nil},
		{context.DeadlineExceeded, 503, "UNAVAILABLE", nil},
		{fmt.Errorf("%w: %w", agentloop.ErrWorkspaceTimeout, context.DeadlineExceeded), 503, "UNAVAILABLE", nil},
		{web.ErrPanicked, 500, "INTERNAL_ERROR", nil},
		{errors.New("anything"), 500, "INTERNAL_ERROR", nil},
	} {
		for _, err := range []error{tc.err, fmt.Errorf("inner secret: %w", tc.err)} {
			status, body := describe(err)
			require.Equal(t, tc.status, status, "%v", err)
			require.Equal(t, tc.code, body.Code, "%v", err)
			require.Equal(t, tc.detail, body.Detail, "%v", err)
			require.NotEmpty(t, body.Error)
			require.NotContains(t, body.Error, "secret")
			require.NotContains(t, body.Error, ":", "no internal prefixes: %q", body.Error)
		}
	}
	_, body := describe(fmt.Errorf("%w: %w", agentloop.ErrWorkspaceTimeout, context.DeadlineExceeded))
	require.Equal(t, "the session's files did not answer in time", body.Error)
}
