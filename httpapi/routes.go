package httpapi

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi/agui"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/httpapi/chat"
	"github.com/helixd/helixd/httpapi/durable"
	"github.com/helixd/helixd/httpapi/internal/control"
	"github.com/helixd/helixd/httpapi/internal/inspect"
	"github.com/helixd/helixd/httpapi/internal/operate"
	"github.com/helixd/helixd/httpapi/internal/stream"
	"github.com/helixd/helixd/httpapi/internal/web"
	"github.com/helixd/helixd/httpapi/responses"
)

// opPublic is the operation of routes that need no authentication.
const opPublic auth.Operation = ""

// route is a row of the routing table.
type route struct {
	method, pattern string
	params          string         // the query's parameters
	op              auth.Operation // opPublic: no authentication
	session         source
	handle          handler
}

// handler answers an admitted request.
type handler func(*Server, http.ResponseWriter, *web.Request) error

// of makes handlers of the routes of a part of the server.
func of[R any](part func(*Server) R) func(func(R, http.ResponseWriter, *web.Request) error) handler {
	return func(f func(R, http.ResponseWriter, *web.Request) error) handler {
		return func(s *Server, w http.ResponseWriter, r *web.Request) error { return f(part(s), w, r) }
	}
}

var (
	streams  = of(func(s *Server) *stream.Routes { return s.stream })
	inspects = of(func(s *Server) *inspect.Routes { return s.inspect })
	controls = of(func(s *Server) *control.Routes { return s.control })
	operates = of(func(s *Server) *operate.Routes { return s.operate })
	chats    = of(func(s *Server) *chat.Routes { return s.chat })
	durables = of(func(s *Server) *durable.Routes { return s.durable })
	answers  = of(func(s *Server) *responses.Routes { return s.responses })
	aguis    = of(func(s *Server) *agui.Routes { return s.agui })
)

// source says where a request names its session.
type source int

const (
	noSession       source = iota
	inPath                 // as {id}
	inPathNew              // as {id}; the request may create it
	inPathOrNothing        // as {id}; 204 if there is no such session
	inQuery                // as sessionId
	inBody                 // the handler authorizes it
	inBodyNew              // the same; the request may create it
	inBoth                 // two, as a and b; the handler authorizes them
	inName                 // in an id of another protocol, in the path; the handler authorizes it
	inScope                // as id, with scope=session; the handler authorizes it
	inStream               // as {path}, which names a durable stream
	inStreamNew            // the same; the request may create it
)

// anyParams are the parameters of a route that ignores those that it does not know.
const anyParams = "*"

// restOfPath is the last segment of a pattern that matches all segments from there on. A route
// without it has precedence.
const restOfPath = "{path}"

var routeTable = []route{
	{"POST", "/start", "", auth.OpStart, inBodyNew, controls((*control.Routes).Start)},
	{"POST", "/resume", "", auth.OpResume, inBody, controls((*control.Routes).Resume)},
	{"POST", "/interrupt", "", auth.OpInterrupt, inBody, controls((*control.Routes).Interrupt)},
	{"POST", "/abort", "", auth.OpAbort, inBody, controls((*control.Routes).Abort)},
	{"POST", "/submit-tool-result", "", auth.OpSubmitToolResult, inBody, controls((*control.Routes).SubmitToolResult)},
	{"GET", "/sse", "sessionId fromSequence ticket", auth.OpStream, inQuery, streams((*stream.Routes).SSE)},
	{"GET", "/status", "sessionId", auth.OpStatus, inQuery, inspects((*inspect.Routes).Status)},
	{"GET", "/workspace", "sessionId", auth.OpWorkspace, inQuery, inspects((*inspect.Routes).Workspace)},
	{"GET", "/workspaces", "sessionId", auth.OpWorkspace, inQuery, inspects((*inspect.Routes).Workspace)},
	{"POST", "/chat", "format", auth.OpChat, inBodyNew, chats(chat.Hosted((*chat.Routes).Post))},
	{"GET", "/chat/{id}/stream", "format ticket", auth.OpChatStream, inPathOrNothing, chats(chat.Hosted((*chat.Routes).Stream))},
	{"POST", "/chat/{id}/submit-tool-result", "", auth.OpChatSubmitToolResult, inPath, chats(chat.Hosted((*chat.Routes).SubmitToolResult))},
	{"POST", "/chat/{id}/interrupt", "", auth.OpChatInterrupt, inPath, chats(chat.Hosted((*chat.Routes).Interrupt))},
	{"POST", "/chat/{id}/abort", "", auth.OpChatAbort, inPath, chats(chat.Hosted((*chat.Routes).Abort))},
	{"POST", "/chat/{id}/tickets", "", auth.OpChatStream, inPath, (*Server).ticket},
	{"GET", "/chat/{id}/snapshot", "includePartialContent", auth.OpChatStream, inPath, chats((*chat.Routes).Snapshot)},
	{"GET", "/chat/{id}/messages", "offset limit includeReasoning includeToolResults", auth.OpChatStream, inPath, chats((*chat.Routes).Messages)},
	{"GET", "/sessions", "userId agentType status streamStatus tag metadata from to parentSessionId forkedFrom sort offset limit", auth.OpSessions, noSession, inspects((*inspect.Routes).Sessions)},
	{"GET", "/sessions/{id}", "", auth.OpStatus, inPath, inspects((*inspect.Routes).Summary)},
	{"GET", "/sessions/{id}/records", "from to limit dead follow kind type agent run call", auth.OpRecords, inPath, streams((*stream.Routes).Records)},
	{"GET", "/sessions/{id}/stream", "fromSequence ticket", auth.OpStream, inPath, streams((*stream.Routes).StoreStream)},
	{"GET", "/sessions/{id}/replay", "from to speed maxPause ticket", auth.OpStream, inPath, streams((*stream.Routes).Replay)},
	{"GET", "/sessions/{id}/state", "at", auth.OpRecords, inPath, inspects((*inspect.Routes).State)},
	{"GET", "/sessions/{id}/diff", "from to only", auth.OpRecords, inPath, inspects((*inspect.Routes).Diff)},
	{"GET", "/sessions/{id}/timeline", "from", auth.OpRecords, inPath, inspects((*inspect.Routes).Timeline)},
	{"GET", "/sessions/{id}/usage", "offset limit", auth.OpStatus, inPath, inspects((*inspect.Routes).Usage)},
	{"GET", "/sessions/{id}/checkpoints", "offset limit", auth.OpStatus, inPath, inspects((*inspect.Routes).Checkpoints)},
	{"GET", "/sessions/{id}/runs", "offset limit", auth.OpStatus, inPath, inspects((*inspect.Routes).Runs)},
	{"GET", "/sessions/{id}/files", "path offset limit", auth.OpWorkspace, inPath, inspects((*inspect.Routes).Files)},
	{"GET", "/compare", "a aAt b bAt", auth.OpRecords, inBoth, inspects((*inspect.Routes).Compare)},
	{"POST", "/sessions/{id}/messages", "", auth.OpStart, inPath, controls((*control.Routes).SendMessage)},
	{"POST", "/sessions/{id}/rollback", "", auth.OpResume, inPath, controls((*control.Routes).Rollback)},
	{"POST", "/sessions/{id}/fork", "", auth.OpStart, inPath, controls((*control.Routes).Fork)},
	{"POST", "/sessions/{id}/subscriptions", "", auth.OpRecords, inPath, operates((*operate.Routes).Subscribe)},
	{"POST", "/sessions/{id}/tickets", "", auth.OpStream, inPath, (*Server).ticket},
	{"DELETE", "/sessions/{id}/subscriptions", "", auth.OpRecords, inPath, operates((*operate.Routes).Unsubscribe)},
	{"POST", "/sessions/{id}/chunks", "", auth.OpAppend, inPathNew, controls((*control.Routes).Chunks)},
	{"POST", "/sessions/{id}/end", "", auth.OpAppend, inPath, controls((*control.Routes).End)},
	{"POST", "/sessions/{id}/fail", "", auth.OpAppend, inPath, controls((*control.Routes).FailStream)},
	{"POST", "/sessions/{id}/import", "", auth.OpImport, inPathNew, controls((*control.Routes).ImportRecords)},
	{"DELETE", "/sessions/{id}", "", auth.OpErase, inPath, controls((*control.Routes).Erase)},
	{"GET", "/runs", "sessionId userId agentType status from to offset limit", auth.OpSessions, noSession, inspects((*inspect.Routes).AllRuns)},
	{"GET", "/usage", "by sessionId userId agentType from to", auth.OpSessions, noSession, inspects((*inspect.Routes).UsageBy)},
	{"GET", "/search", "q sessionId userId agentType offset limit", auth.OpSearch, noSession, inspects((*inspect.Routes).Search)},
	{"GET", "/parked", "sessionId offset limit", auth.OpSessions, noSession, inspects((*inspect.Routes).Parked)},
	{"GET", "/memories", "scope id tenant q offset limit", auth.OpMemory, inScope, controls((*control.Routes).Memories)},
	{"POST", "/memories", "", auth.OpMemory, inBody, controls((*control.Routes).SaveMemory)},
	{"DELETE", "/memories", "scope id tenant", auth.OpErase, inScope, controls((*control.Routes).EraseMemories)},
	{"DELETE", "/memories/{memoryId}", "scope id tenant", auth.OpMemory, inScope, controls((*control.Routes).ForgetMemory)},
	{"POST", "/memories/process", "", auth.OpAdmin, noSession, controls((*control.Routes).ProcessMemories)},
	{"POST", "/retention", "", auth.OpRetain, noSession, operates((*operate.Routes).Retain)},
	{"GET", "/backup", "rate", auth.OpBackup, noSession, operates((*operate.Routes).Backup)},
	{"POST", "/sweep", "", auth.OpErase, noSession, operates((*operate.Routes).Sweep)},
	{"POST", "/admin/reload", "", auth.OpAdmin, noSession, operates((*operate.Routes).Reload)},
	// openapi.yaml, which every daemon serves, does not have the routes of a protocol of others: its
	// own document describes them, and a daemon may not speak it. See [Protocols].
	{"PUT", durable.Prefix + restOfPath, anyParams, auth.OpAppend, inStreamNew, durables((*durable.Routes).Create)},
	{"POST", durable.Prefix + restOfPath, anyParams, auth.OpAppend, inStream, durables((*durable.Routes).Append)},
	{"GET", durable.Prefix + restOfPath, anyParams, auth.OpStream, inStream, durables((*durable.Routes).Read)},
	{"DELETE", durable.Prefix + restOfPath, anyParams, auth.OpErase, inStream, durables((*durable.Routes).Delete)},
	{"GET", durable.Prefix + "sessions/{id}", anyParams, auth.OpStream, inPath, durables((*durable.Routes).ReadSession)},
	{"POST", "/v1/responses", "", auth.OpChat, inBodyNew, answers((*responses.Routes).Create)},
	{"GET", "/v1/responses/{responseId}", "stream starting_after include include[] include_obfuscation", auth.OpChatStream, inName, answers((*responses.Routes).Retrieve)},
	{"DELETE", "/v1/responses/{responseId}", "", auth.OpErase, inName, answers((*responses.Routes).Delete)},
	{"POST", "/v1/responses/{responseId}/cancel", "", auth.OpChatAbort, inName, answers((*responses.Routes).Cancel)},
	{"GET", "/v1/responses/{responseId}/input_items", "limit order after include include[]", auth.OpChatStream, inName, answers((*responses.Routes).InputItems)},
	{"POST", "/v1/conversations", "", auth.OpChat, inBodyNew, answers((*responses.Routes).CreateConversation)},
	{"GET", "/v1/conversations/{conversationId}", "", auth.OpChatStream, inName, answers((*responses.Routes).RetrieveConversation)},
	{"POST", "/v1/conversations/{conversationId}", "", auth.OpChat, inName, answers((*responses.Routes).UpdateConversation)},
	{"DELETE", "/v1/conversations/{conversationId}", "", auth.OpErase, inName, answers((*responses.Routes).DeleteConversation)},
	{"GET", "/v1/conversations/{conversationId}/items", "limit order after include include[]", auth.OpChatStream, inName, answers((*responses.Routes).Items)},
	{"POST", "/v1/conversations/{conversationId}/items", "include include[]", auth.OpChat, inName, answers((*responses.Routes).AddItems)},
	{"GET", "/v1/conversations/{conversationId}/items/{itemId}", "include include[]", auth.OpChatStream, inName, answers((*responses.Routes).Item)},
	{"DELETE", "/v1/conversations/{conversationId}/items/{itemId}", "", auth.OpErase, inName, answers((*responses.Routes).DeleteItem)},
	{"POST", "/ag-ui/{agent}", "", auth.OpChat, inBodyNew, aguis((*agui.Routes).Run)},
	{"GET", "/ag-ui/{agent}/{id}", "after", auth.OpChatStream, inPath, aguis((*agui.Routes).Rejoin)},
	{"GET", "/", "", opPublic, noSession, (*Server).debugger}, // it authorizes itself
	{"GET", "/debugger/{file}", "", opPublic, noSession, (*Server).debuggerFile},
	{"GET", "/healthz", "", opPublic, noSession, operates((*operate.Routes).Healthz)},
	{"GET", readyRoute, "", opPublic, noSession, operates((*operate.Routes).Readyz)}, // it authorizes itself
	{"GET", metricsRoute, "", auth.OpMetrics, noSession, (*Server).metrics},
	{"GET", openapiRoute, "", auth.OpOpenAPI, noSession, (*Server).openapi},
}

// The routes that [Options].Public may open.
const (
	readyRoute   = "/readyz"
	metricsRoute = "/metrics"
	openapiRoute = "/openapi.json"
)

// PublicRoutes returns the routes that [Options].Public may name. GET /readyz always says
// whether the server is ready; if it is public, everybody gets the rest of the answer.
func PublicRoutes() []string { return []string{readyRoute, metricsRoute, openapiRoute} }

func checkPublic(routes []string) error {
	for _, route := range routes {
		if !slices.Contains(PublicRoutes(), route) {
			return fmt.Errorf("httpapi: the route %q can't be public: only %s can", route, strings.Join(PublicRoutes(), ", "))
		}
	}
	return nil
}

// public reports whether a route needs no authentication.
func (s *Server) public(rt route) bool {
	return rt.op == opPublic || slices.Contains(s.opts.Public, rt.pattern)
}

// find returns the routes of the request's path, by method, and the name in the path. It
// splits the path before it decodes it. http.ServeMux would redirect a path that is not
// canonical, that is to another session, and would take the session "/" for a trailing
// slash.
func find(r *http.Request) (byMethod map[string]route, name string) {
	p := r.URL.EscapedPath()
	if path.Clean(p) != p {
		return nil, ""
	}
	segments := strings.Split(p, "/")
	for i, raw := range segments {
		segment, err := url.PathUnescape(raw)
		if err != nil {
			return nil, ""
		}
		segments[i] = segment
	}
	for _, rest := range []bool{false, true} {
		for i, rt := range routeTable {
			if strings.HasSuffix(rt.pattern, restOfPath) != rest {
				continue
			}
			if id, ok := match(routePatterns[i], segments); ok {
				if byMethod == nil {
					byMethod = map[string]route{}
				}
				byMethod[rt.method] = rt
				if id != "" {
					name = id
				}
			}
		}
		if byMethod != nil {
			break
		}
	}
	return byMethod, name
}

// routePatterns has the segments of each route's pattern.
var routePatterns = func() [][]string {
	all := make([][]string, len(routeTable))
	for i, rt := range routeTable {
		all[i] = strings.Split(rt.pattern, "/")
	}
	return all
}()

func match(pattern, segments []string) (id string, ok bool) {
	rest := pattern[len(pattern)-1] == restOfPath
	if len(segments) < len(pattern) || len(segments) > len(pattern) && !rest {
		return "", false
	}
	for i, p := range pattern {
		switch {
		case p == restOfPath:
			return strings.Join(segments[i:], "/"), true
		case strings.HasPrefix(p, "{"):
			id = segments[i]
		case p != segments[i]:
			return "", false
		}
	}
	return id, true
}

// dispatch finds the route of a request and answers it.
func (s *Server) dispatch(w *web.Tracker, r *http.Request) error {
	byMethod, name := find(r)
	if byMethod == nil || !s.spoken(r.URL.Path) {
		return errNoRoute
	}
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	rt, ok := byMethod[method]
	if !ok {
		w.Header().Set("Allow", allow(byMethod))
		return errMethod
	}
	w.Route = rt.pattern
	return s.serve(w, r, rt, name)
}

func allow(byMethod map[string]route) string {
	var names []string
	for m := range byMethod {
		names = append(names, m)
		if m == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// serve has a request admitted, and answers it.
func (s *Server) serve(w *web.Tracker, r *http.Request, rt route, name string) error {
	q, queryErr := web.ParseQuery(r.URL.RawQuery)
	session, named := "", true
	validate := eventlog.ValidateClientSessionID
	switch rt.session {
	case inStream, inStreamNew:
		session = eventlog.DurableLogID(name)
		validate = func(string) error {
			_, err := durable.LogID(name)
			return err
		}
	case inPath, inPathNew, inPathOrNothing:
		session = name
	case inQuery:
		session = q.Values.Get("sessionId")
	default:
		named = false
	}
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	if ticket := q.Values.Get(ticketParam); ticket != "" {
		var err error
		if r, err = s.redeemed(r, rt, session, ticket); err != nil {
			return err
		}
	}
	public := s.public(rt)
	req, err := s.gate.Admit(w, r, rt.op, session, public)
	if err != nil {
		return err
	}
	defer req.End()
	if queryErr != nil {
		return queryErr
	}
	if !public {
		if err := rt.checkParams(q); err != nil {
			return err
		}
	}
	req.Session, req.Name, req.Query = session, name, q
	req.Creates = rt.session == inPathNew || rt.session == inBodyNew || rt.session == inStreamNew
	if named {
		if err := validate(session); err != nil {
			return err
		}
		w.Session = session
		switch err := req.Own(session, req.Creates); {
		case errors.Is(err, eventlog.ErrSessionNotFound) && rt.session == inPathOrNothing:
			return req.Nothing(w)
		case err != nil:
			return err
		}
	}
	return rt.handle(s, w, req)
}

// knownParams says which parameters a route has.
func knownParams(known []string) string {
	if len(known) == 0 {
		return "it has none"
	}
	return "known are " + strings.Join(known, ", ")
}

// checkParams returns an error for a parameter that the route would ignore: the answer to
// a different question is worse than none. Public pages, and POST routes without
// parameters, accept any, since proxies may add some.
func (rt route) checkParams(q web.Query) error {
	known := strings.Fields(rt.params)
	if rt.params == anyParams || rt.method == http.MethodPost && len(known) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.Values)) {
		if !slices.Contains(known, name) {
			return web.Invalid(name, "is not a parameter of this route; "+knownParams(known))
		}
	}
	return nil
}
