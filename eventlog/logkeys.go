package eventlog

// Keys of log attributes. Whatever is logged of a request, a session or a run
// has them, in all packages, so that one search finds all of it.
const (
	LogRequestID = "requestId" // of the HTTP request, as X-Request-Id has it
	LogSession   = "session"   // the session's id, a sub-agent's own
	LogRun       = "run"       // the run's id
	LogCall      = "call"      // the tool call's id
	LogTool      = "tool"      // the tool's name
	LogCaller    = "caller"    // the name of the caller's token, or its subject
	LogUser      = "user"      // the user on whose behalf the caller acts
	LogAddress   = "address"   // the network address that the request came from
)
