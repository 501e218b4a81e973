package httpapi

import (
	"errors"
	"net"
	"net/http"
	"strings"
)

// Operation names what a request does, for an [Authenticator]. The names are
// stable and are not those of paths (document 004, AgentServerOperation).
type Operation string

// Operations of document 004.
const (
	OpStart                Operation = "start"
	OpResume               Operation = "resume"
	OpStream               Operation = "stream" // GET /sse
	OpStatus               Operation = "status"
	OpInterrupt            Operation = "interrupt"
	OpAbort                Operation = "abort"
	OpSubmitToolResult     Operation = "submit-tool-result"
	OpWorkspace            Operation = "workspace"
	OpChat                 Operation = "chat"
	OpChatStream           Operation = "chat-stream"
	OpChatSubmitToolResult Operation = "chat-submit-tool-result"
	OpChatInterrupt        Operation = "chat-interrupt"
	OpChatAbort            Operation = "chat-abort"
)

// Operations of helixd's own routes.
const (
	OpSessions Operation = "sessions"
	OpAppend   Operation = "append"
	OpRecords  Operation = "records"
	OpErase    Operation = "erase"
	OpImport   Operation = "import"
	OpRetain   Operation = "retain"
)

// opPublic is of routes that need no authentication.
const opPublic Operation = ""

// Authenticator decides whether a request may do an operation on a session;
// nil means that it may (document 004, AuthenticateHook). [ErrUnauthorized]
// and [ErrForbidden], wrapped or not, refuse it; any other error does so with
// INTERNAL_ERROR.
//
// An empty session means that none is named, or not yet: the caller and the
// operation alone are to be judged. Where the body names the session, the
// authenticator is called again with it. For a listing it is called with each
// session, and those that it refuses are left out. It must not read the body.
type Authenticator func(r *http.Request, op Operation, session string) error

// Refusals of an [Authenticator].
var (
	// ErrUnauthorized: the caller is not known. 401.
	ErrUnauthorized = errors.New("httpapi: unauthorized")
	// ErrForbidden: the caller is known and may not do this. 403.
	ErrForbidden = errors.New("httpapi: forbidden")
)

// everybody is the Authenticator of a server without one. It refuses host
// names but localhost: a web page can make its own name mean this machine, and
// a browser then takes the two for one origin.
func everybody(r *http.Request, _ Operation, _ string) error {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if host == "" || host == "localhost" || net.ParseIP(host) != nil {
		return nil
	}
	return ErrForbidden
}
