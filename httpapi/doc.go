// Package httpapi serves sessions over HTTP. docs/reference/protocol.md states the protocol,
// and GET /openapi.json describes each request and answer.
//
//	POST /start, /resume              begin and continue runs
//	POST /interrupt, /abort           stop a run, for now or for good
//	POST /submit-tool-result          answer a tool call that waits
//	GET  /sse                         the stream, as server-sent events
//	GET  /status                      the state of a run
//	POST /chat                        what a chat client's messages ask for
//	GET  /chat/{id}/stream            the message that is under way
//	POST /chat/{id}/submit-tool-result, /interrupt, /abort
//	GET  /chat/{id}/snapshot          what a chat client starts from
//	GET  /chat/{id}/messages          a page of its messages
//	GET  /sessions, /sessions/{id}    sessions and their summaries
//	GET  /runs, /usage, /search       runs, sums and words of all sessions
//	GET  /parked                      records that could not be used
//	GET  /sessions/{id}/checkpoints, /runs
//	POST /sessions/{id}/rollback      take a session back
//	POST /sessions/{id}/fork          a new session from an earlier state
//	POST /sessions/{id}/subscriptions the right of a NATS client to receive its records
//	POST /sessions/{id}/tickets, /chat/{id}/tickets open a stream by its URL alone
//	DELETE /sessions/{id}/subscriptions  revoke those rights
//	POST /sessions/{id}/chunks        append from outside producers, all or none
//	POST /sessions/{id}/end, /fail    end such a stream
//	POST /sessions/{id}/import        a new session of exported records
//	GET  /sessions/{id}/records       the log itself, as NDJSON
//	GET  /sessions/{id}/stream        the stream as other stores know it
//	GET  /sessions/{id}/state         the whole state at any sequence
//	GET  /sessions/{id}/diff          from one state to another
//	DELETE /sessions/{id}             erases a session, for good
//	POST /retention                   removes what is old, of all sessions
//	POST /admin/reload                reads agents and tokens again
//	GET  /healthz, /readyz            liveness and readiness, without auth
//	GET  /metrics                     for Prometheus; needs the operation metrics unless Options.Public names it
//
// The package finds a request's route, has it let in, and answers with errors. The rest
// is in its own packages, of which each knows only those before it:
//
//	api               answers, events, error codes, headers and limits
//	auth              who calls, and what the caller may do
//	internal/web      lets requests in, reads them, writes answers
//	internal/stream   history, then what is live, then the end
//	internal/inspect  answers that only look
//	internal/control  answers that change a session
//	internal/operate  retention, backups, health
//	chat              AI SDK clients
//	durable           Durable Streams
//	responses         OpenAI's Responses and Conversations
//	agui              AG-UI
//	debugger          the page
//
// Package client speaks to a server, and knows only api.
//
// What it promises:
//
//   - Fail closed. A [Server] has an [auth.Authenticator], or its options
//     explicitly allow unauthenticated requests. A request is authorized before anything is read or
//     done for it; where the body names the session, the caller and the
//     operation are checked before the body is read, and the session before
//     anything is done. A caller who is limited to some sessions does not
//     learn which others there are.
//   - Exact cursors. A client of /sse with cursor n gets the effective
//     records with a sequence > n, each once and in order, across the seam
//     between what is stored and what is live.
//   - New and attached clients agree. The fold of the log alone decides, at one
//     sequence, whether a stream has ended.
//   - Slow clients block nobody. A stream is pulled, one event at a time;
//     a client that reads nothing for [api.WriteTimeout] is dropped.
//   - No partial answer looks complete. A failure in the middle aborts the
//     connection. A stream of /sse that breaks off ends without an end or
//     error event: reconnect with the last id.
//   - Appends are all or none, and once. One with an Idempotency-Key is
//     remembered in the log itself, by the same act that appends it: the key
//     gets the same answer for as long as the session lives, regardless of the
//     caller and of later appends. A chunk that is not valid, or too
//     many of them, changes nothing.
//   - Answers about many sessions say how far behind the log they are. Sessions that the
//     caller may not see are not counted, with any filter.
//   - Errors are {error, code, detail?, requestId}, by one table. An error
//     that is not in it is INTERNAL_ERROR: it is logged in full, and its text is not shown.
//   - Every answer has an X-Request-Id, the client's own if that is well
//     formed ([A-Za-z0-9._-], at most 128 bytes). The log's lines have it, and
//     [RequestID] gives it to programs around the server.
//   - Web pages of other origins than those of Options.Origins can do nothing.
//
// What it does not promise: that a client which is attached while records are
// truncated has not seen them. It gets stream_resync and then the records that are left.
// The right of a NATS client lasts as long as the answer said when it was made, at most
// until its caller's token expires, even if the caller is removed. If the session is
// erased and created again, the right holds for the new one.
//
// # Authentication
//
// [auth.BearerTokens] are listed in the configuration, [auth.JWT] takes what another
// service signs, [auth.AnyOf] puts them side by side. A program that embeds the
// server writes an [auth.Authenticator] of its own: its middleware in front of the
// server says in the request's context who calls, and an [auth.Refusal] says to the
// caller why not.
//
// [Options].Identify finds the [auth.Caller] of each request once. A caller with
// a user reaches only the sessions and memories of this user, unless it has the
// right [auth.OpActAs]: others are answered as if they did not exist.
//
// Sub-agents have no separate access: a caller that may use a root session sees and
// answers its whole tree, under the root's id. No route takes the id of a child. A caller
// that may use that id can begin an unrelated session of that name.
//
// Session ids are percent-encoded in paths, "/" as %2F and ".." as %2E%2E;
// paths that are not canonical are not found rather than redirected, so that
// no id can lead to another session.
package httpapi
