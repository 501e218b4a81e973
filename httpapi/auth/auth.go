package auth

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// Operation names what a request does, for an [Authenticator]. The names are
// stable and are not those of paths.
type Operation string

// Operations of the agent and chat routes.
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

// Operations of the other routes.
const (
	OpSessions Operation = "sessions" // lists and sums; no content
	OpSearch   Operation = "search"   // in messages and tool calls
	OpAppend   Operation = "append"
	OpRecords  Operation = "records"
	OpErase    Operation = "erase"
	OpMemory   Operation = "memory" // memories; erasing them is OpErase
	OpImport   Operation = "import"
	OpRetain   Operation = "retain"
	OpBackup   Operation = "backup"
	OpMetrics  Operation = "metrics" // GET /metrics
	OpOpenAPI  Operation = "openapi" // GET /openapi.json
	OpAdmin    Operation = "admin"   // POST /admin/reload, /memories/process
	// OpDebugger is for GET /, the debugger's page. An unknown caller gets the page with
	// status 401 and signs in there.
	OpDebugger Operation = "debugger"
)

// AllSessions means all sessions, and the memories of users and agents.
const AllSessions = "*"

// Authenticator decides whether a request may do an operation on a session;
// nil means that it may. [ErrUnauthorized],
// [ErrForbidden] and [Refusal], wrapped or not, refuse it; any other error
// does so with INTERNAL_ERROR.
//
// An empty session means that none is named, or not yet: the caller and the
// operation alone are to be judged. Where the body names the session, the
// authenticator is called again with it, and where a request names two, with
// each. For a listing it is called with each
// session, and those that it refuses are left out. For what is about all
// sessions, which [OpRetain], [OpBackup], [OpAdmin] and [OpMetrics] are and
// [OpErase] can be, it is called with the session "*"; so it is for the memories
// of users and of agents. It must not read the body.
//
// The request's context is the one that the server was called with, so
// middleware in front of the server can say there who the caller is. It is
// asked when a request begins, and by open streams again when another one
// takes its place ([Server.Reconfigure]).
type Authenticator func(r *http.Request, op Operation, session string) error

// Refusals of an [Authenticator].
var (
	// ErrUnauthorized: the caller is not known. 401.
	ErrUnauthorized = errors.New("httpapi: unauthorized")
	// ErrForbidden: the caller is known and may not do this. 403.
	ErrForbidden = errors.New("httpapi: forbidden")
	// ErrOtherUser: the request names another user than its caller's. 403.
	ErrOtherUser = errors.New("httpapi: the caller has another user")
)

// Refusal refuses a request with its own status and message. A status outside of the range of Status is an
// internal error.
type Refusal struct {
	// Status is the answer's, 400 to 599; 0: 401. A status below 500 refuses
	// the caller: 401 as [ErrUnauthorized], any other one as [ErrForbidden]. A
	// status from 500 on says that the decision failed.
	Status  int
	Message string // shown to the caller, at most 8 KiB of it; empty: a default
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("httpapi: refused with status %d: %s", e.StatusCode(), e.Message)
}

// Is reports whether target is the refusal for the error's status.
func (e *Refusal) Is(target error) bool {
	switch status := e.StatusCode(); {
	case status == http.StatusUnauthorized:
		return target == ErrUnauthorized
	case status >= 400 && status < 500:
		return target == ErrForbidden
	}
	return false
}

func (e *Refusal) StatusCode() int { return cmp.Or(e.Status, http.StatusUnauthorized) }

// Answers reports whether the error is an answer to the client: its status is
// that of a failure.
func (e *Refusal) Answers() bool { return e.StatusCode() >= 400 && e.StatusCode() <= 599 }

// AnyOf allows what any of the authenticators allows; they are asked in order.
// If none does, a failure of one that could not decide counts before the
// refusal of a known caller, and that before the others. None at all allows
// nothing.
func AnyOf(auths ...Authenticator) Authenticator {
	auths = slices.Clone(auths)
	return func(r *http.Request, op Operation, session string) error {
		var failed, forbidden, unauthorized error // the first of each
		for _, auth := range auths {
			switch err := auth(r, op, session); {
			case err == nil:
				return nil
			case errors.Is(err, ErrUnauthorized):
				unauthorized = cmp.Or(unauthorized, err)
			case errors.Is(err, ErrForbidden):
				forbidden = cmp.Or(forbidden, err)
			default:
				failed = cmp.Or(failed, err)
			}
		}
		return cmp.Or(failed, forbidden, unauthorized, ErrUnauthorized)
	}
}
