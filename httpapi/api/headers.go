package api

// Headers of requests and answers.
const (
	HeaderRequestID   = "X-Request-Id"            // of both: by which log lines name the request
	HeaderIdempotency = "Idempotency-Key"         // of what is carried out once
	HeaderExpected    = "Helix-Expected-Sequence" // of an append: the session's head
	HeaderAgent       = "X-Helix-Agent"           // of a chat whose body names no agent
	HeaderSession     = "X-Session-Id"            // of a chat's answer
	HeaderRetryAfter  = "Retry-After"             // of an answer to a request that may be sent again later, in seconds

	// Of a client that reconnects.
	HeaderResumeFrom      = "X-Resume-From-Sequence"
	HeaderLastEventID     = "Last-Event-ID"
	HeaderExistingMessage = "X-Existing-Message-Id"
)
