package api

// Headers of requests and answers.
const (
	HeaderRequestID   = "X-Request-Id"            // of both: by which log lines name the request
	HeaderIdempotency = "Idempotency-Key"         // of what is carried out once
	HeaderExpected    = "Helix-Expected-Sequence" // of an append: the session's head
	HeaderAgent       = "X-Helix-Agent"           // of a chat whose body names no agent
	HeaderSession     = "X-Session-Id"            // of a chat's answer

	// Of a client that reconnects.
	HeaderResumeFrom      = "X-Resume-From-Sequence"
	HeaderLastEventID     = "Last-Event-ID"
	HeaderExistingMessage = "X-Existing-Message-Id"
)
