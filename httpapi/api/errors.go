package api

// Code is the machine-readable part of an error answer.
type Code string

// Error codes. GET /openapi.json lists those of each route.
const (
	CodeNotFound         Code = "NOT_FOUND"
	CodeAlreadyRunning   Code = "ALREADY_RUNNING"
	CodeAlreadyCompleted Code = "ALREADY_COMPLETED"
	CodeInvalidRequest   Code = "INVALID_REQUEST"
	CodeInternalError    Code = "INTERNAL_ERROR"
	CodePayloadTooLarge  Code = "PAYLOAD_TOO_LARGE"
	CodeBusy             Code = "BUSY"          // too much is under way; see Retry-After
	CodeTooMuchWork      Code = "TOO_MUCH_WORK" // a patch of the state is too expensive
	CodeLengthRequired   Code = "LENGTH_REQUIRED"
	CodeUnauthorized     Code = "UNAUTHORIZED"  // 401, 403, or another status of an authenticator
	CodeUserMismatch     Code = "USER_MISMATCH" // the request names a user other than its caller's
	CodeNotImplemented   Code = "NOT_IMPLEMENTED"

	CodeMethodNotAllowed Code = "METHOD_NOT_ALLOWED"
	CodeSequenceConflict Code = "SEQUENCE_CONFLICT"
	CodeSessionExists    Code = "SESSION_EXISTS" // with other content than is imported
	CodeErasurePending   Code = "ERASURE_PENDING"
	CodeStreamEnded      Code = "STREAM_ENDED"
	CodeCursorAhead      Code = "CURSOR_AHEAD"
	CodeTruncated        Code = "TRUNCATED" // below the retention floor

	CodeStreamConflict Code = "STREAM_CONFLICT" // the durable stream has another configuration
	CodeProducerFenced Code = "PRODUCER_FENCED" // the producer has begun a later epoch

	CodeIdempotencyMismatch Code = "IDEMPOTENCY_MISMATCH"
	CodeIdempotencyExpired  Code = "IDEMPOTENCY_EXPIRED"

	CodeUnavailable Code = "UNAVAILABLE"
	CodeReadOnly    Code = "READ_ONLY" // the log takes no appends now

	CodeInvalidConfig Code = "INVALID_CONFIG" // of POST /admin/reload; nothing has changed

	CodeWorkspaceWiring Code = "WORKSPACE_WIRING" // this node lacks the provider of the session's workspace

	CodeRateLimited   Code = "RATE_LIMITED"   // too many requests a second; Retry-After says when
	CodeQuotaExceeded Code = "QUOTA_EXCEEDED" // a limit of the caller or its tenant; its detail names it

	CodeInterruptDeadline Code = "INTERRUPT_DEADLINE_EXCEEDED"
)

// ErrorBody is the body of every error answer.
type ErrorBody struct {
	Error  string `json:"error"`
	Code   Code   `json:"code"`
	Detail any    `json:"detail,omitempty"`
	// Status is the outcome of a submission (see docs/reference/protocol.md#suspension).
	Status string `json:"status,omitempty"`
	// RequestID is the answer's X-Request-Id: log lines have it, too.
	RequestID string `json:"requestId,omitempty"`
}

// Details of errors: [ErrorBody].Detail.
type (
	HeadDetail struct {
		Head uint64 `json:"head"`
	}
	FloorDetail struct {
		Floor uint64 `json:"floor"`
	}
	FieldDetail struct {
		Field string `json:"field"`
	}
	ChunkDetail struct {
		Index int    `json:"index"`
		Field string `json:"field,omitempty"`
	}
	LineDetail struct {
		Line    int    `json:"line"`
		Field   string `json:"field,omitempty"`
		Records int    `json:"records"` // that are there
	}
	ConfigDetail struct {
		Problems []string `json:"problems"`
	}
	QuotaDetail struct {
		Quota string  `json:"quota"` // such as sessions
		Limit float64 `json:"limit"`
	}
	LimitDetail struct {
		Limit int `json:"limit"`
	}
)
