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
	"github.com/helixd/helixd/httpapi/auth"
)

// opPublic is of routes that need no authentication.
const opPublic auth.Operation = ""

// route is a row of the routing table.
type route struct {
	method, pattern string
	params          string         // the query's parameters
	op              auth.Operation // opPublic: no authentication
	session         source
	handle          func(*Server, http.ResponseWriter, *request) error
}

// source tells where a request names its session.
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
	inScope                // as id, with scope=session; the handler authorizes it
)

var routeTable = []route{
	{"POST", "/start", "", auth.OpStart, inBodyNew, (*Server).start},
	{"POST", "/resume", "", auth.OpResume, inBody, (*Server).resume},
	{"POST", "/interrupt", "", auth.OpInterrupt, inBody, (*Server).interrupt},
	{"POST", "/abort", "", auth.OpAbort, inBody, (*Server).abort},
	{"POST", "/submit-tool-result", "", auth.OpSubmitToolResult, inBody, (*Server).submitToolResult},
	{"GET", "/sse", "sessionId fromSequence ticket", auth.OpStream, inQuery, (*Server).sse},
	{"GET", "/status", "sessionId", auth.OpStatus, inQuery, (*Server).status},
	{"GET", "/workspace", "sessionId", auth.OpWorkspace, inQuery, (*Server).workspace},
	{"GET", "/workspaces", "sessionId", auth.OpWorkspace, inQuery, (*Server).workspace},
	{"POST", "/chat", "format", auth.OpChat, inBodyNew, hosted((*Server).postChat)},
	{"GET", "/chat/{id}/stream", "format ticket", auth.OpChatStream, inPathOrNothing, hosted((*Server).chatStream)},
	{"POST", "/chat/{id}/submit-tool-result", "", auth.OpChatSubmitToolResult, inPath, hosted((*Server).chatSubmit)},
	{"POST", "/chat/{id}/interrupt", "", auth.OpChatInterrupt, inPath, hosted((*Server).chatInterrupt)},
	{"POST", "/chat/{id}/abort", "", auth.OpChatAbort, inPath, hosted((*Server).chatAbort)},
	{"POST", "/chat/{id}/tickets", "", auth.OpChatStream, inPath, (*Server).ticket},
	{"GET", "/chat/{id}/snapshot", "includePartialContent", auth.OpChatStream, inPath, (*Server).snapshot},
	{"GET", "/chat/{id}/messages", "offset limit includeReasoning includeToolResults", auth.OpChatStream, inPath, (*Server).messages},
	{"GET", "/sessions", "userId agentType status tag metadata from to parentSessionId sort offset limit", auth.OpSessions, noSession, (*Server).sessions},
	{"GET", "/sessions/{id}", "", auth.OpStatus, inPath, (*Server).summary},
	{"GET", "/sessions/{id}/records", "from to limit dead follow kind type agent run call", auth.OpRecords, inPath, (*Server).records},
	{"GET", "/sessions/{id}/stream", "fromSequence ticket", auth.OpStream, inPath, (*Server).storeStream},
	{"GET", "/sessions/{id}/replay", "from to speed maxPause ticket", auth.OpStream, inPath, (*Server).replay},
	{"GET", "/sessions/{id}/state", "at", auth.OpRecords, inPath, (*Server).state},
	{"GET", "/sessions/{id}/diff", "from to only", auth.OpRecords, inPath, (*Server).diff},
	{"GET", "/sessions/{id}/timeline", "from", auth.OpRecords, inPath, (*Server).timeline},
	{"GET", "/sessions/{id}/usage", "offset limit", auth.OpStatus, inPath, (*Server).usage},
	{"GET", "/sessions/{id}/checkpoints", "offset limit", auth.OpStatus, inPath, (*Server).checkpoints},
	{"GET", "/sessions/{id}/runs", "offset limit", auth.OpStatus, inPath, (*Server).runs},
	{"GET", "/compare", "a aAt b bAt", auth.OpRecords, inBoth, (*Server).compare},
	{"POST", "/sessions/{id}/messages", "", auth.OpStart, inPath, (*Server).sendMessage},
	{"POST", "/sessions/{id}/rollback", "", auth.OpResume, inPath, (*Server).rollback},
	{"POST", "/sessions/{id}/fork", "", auth.OpStart, inPath, (*Server).fork},
	{"POST", "/sessions/{id}/subscriptions", "", auth.OpRecords, inPath, (*Server).subscribe},
	{"POST", "/sessions/{id}/tickets", "", auth.OpStream, inPath, (*Server).ticket},
	{"DELETE", "/sessions/{id}/subscriptions", "", auth.OpRecords, inPath, (*Server).unsubscribe},
	{"POST", "/sessions/{id}/chunks", "", auth.OpAppend, inPathNew, (*Server).chunks},
	{"POST", "/sessions/{id}/end", "", auth.OpAppend, inPath, (*Server).end},
	{"POST", "/sessions/{id}/fail", "", auth.OpAppend, inPath, (*Server).failStream},
	{"POST", "/sessions/{id}/import", "", auth.OpImport, inPathNew, (*Server).importRecords},
	{"DELETE", "/sessions/{id}", "", auth.OpErase, inPath, (*Server).erase},
	{"GET", "/runs", "sessionId userId agentType status from to offset limit", auth.OpSessions, noSession, (*Server).allRuns},
	{"GET", "/usage", "by sessionId userId agentType from to", auth.OpSessions, noSession, (*Server).usageBy},
	{"GET", "/search", "q sessionId userId agentType offset limit", auth.OpSearch, noSession, (*Server).search},
	{"GET", "/parked", "sessionId offset limit", auth.OpSessions, noSession, (*Server).parked},
	{"GET", "/memories", "scope id tenant q offset limit", auth.OpMemory, inScope, (*Server).memories},
	{"POST", "/memories", "", auth.OpMemory, inBody, (*Server).saveMemory},
	{"DELETE", "/memories", "scope id tenant", auth.OpErase, inScope, (*Server).eraseMemories},
	{"DELETE", "/memories/{memoryId}", "scope id tenant", auth.OpMemory, inScope, (*Server).forgetMemory},
	{"POST", "/memories/process", "", auth.OpAdmin, noSession, (*Server).processMemories},
	{"POST", "/retention", "", auth.OpRetain, noSession, (*Server).retain},
	{"GET", "/backup", "rate", auth.OpBackup, noSession, (*Server).backup},
	{"POST", "/sweep", "", auth.OpErase, noSession, (*Server).sweep},
	{"POST", "/admin/reload", "", auth.OpAdmin, noSession, (*Server).reload},
	{"GET", "/", "", opPublic, noSession, (*Server).debugger}, // it asks itself
	{"GET", "/debugger/{file}", "", opPublic, noSession, (*Server).debuggerFile},
	{"GET", "/healthz", "", opPublic, noSession, (*Server).healthz},
	{"GET", readyRoute, "", opPublic, noSession, (*Server).readyz}, // it asks itself
	{"GET", metricsRoute, "", auth.OpMetrics, noSession, (*Server).metrics},
	{"GET", openapiRoute, "", auth.OpOpenAPI, noSession, (*Server).openapi},
}

// The routes that [Options].Public may open.
const (
	readyRoute   = "/readyz"
	metricsRoute = "/metrics"
	openapiRoute = "/openapi.json"
)

// PublicRoutes returns the routes that [Options].Public may name. GET /readyz
// always says whether the server is ready; it is what else it says.
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

// request is a request whose caller may do the operation, on the session if
// that is known yet.
type request struct {
	*http.Request
	op      auth.Operation
	session string // valid; empty unless inPath or inQuery
	name    string // what stands for {…} in the path
	query   query
	out     *tracker
	began   *settings // those by which it was let in
	creates bool      // it may create its session
	named   string    // the session that the body names, once it is authorized
	body    holding   // what it holds of the bodies under way
	streams func()    // ends the stream that it has open; nil: it has none
}

// find returns the routes of the request's path, by method, and what the path
// names. The path is taken apart before it is decoded, and not
// by http.ServeMux, which redirects where it is not canonical, that is to
// another session, and takes the session "/" for a trailing slash.
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
	for i, rt := range routeTable {
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
	if len(pattern) != len(segments) {
		return "", false
	}
	for i, p := range pattern {
		switch {
		case strings.HasPrefix(p, "{"):
			id = segments[i]
		case p != segments[i]:
			return "", false
		}
	}
	return id, true
}

// dispatch finds the route of a request and answers it.
func (s *Server) dispatch(w *tracker, r *http.Request) error {
	byMethod, name := find(r)
	if byMethod == nil {
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
	w.route = rt.pattern
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

// serve authorizes a request and answers it.
func (s *Server) serve(w *tracker, r *http.Request, rt route, name string) error {
	q, queryErr := parseQuery(r.URL.RawQuery)
	session, named := "", true
	switch rt.session {
	case inPath, inPathNew, inPathOrNothing:
		session = name
	case inQuery:
		session = q.values.Get("sessionId")
	default:
		named = false
	}
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	if ticket := q.values.Get(ticketParam); ticket != "" {
		var err error
		if r, err = s.redeemed(r, rt, session, ticket); err != nil {
			return err
		}
	}
	now := s.settings.Load()
	public := s.public(rt)
	r, err := now.identified(r)
	r = acting(r)
	w.request, w.tenant = r, auth.CallerOf(r.Context()).Tenant
	if !public {
		if err == nil {
			err = s.admission.request(auth.CallerOf(r.Context()))
		}
		if err == nil {
			err = now.allow(r, rt.op, session)
		}
		if err != nil {
			return err
		}
		w.allowed = true
	}
	if err := skipBody(w, r, public); err != nil {
		return err
	}
	if queryErr != nil {
		return queryErr
	}
	if !public {
		if err := rt.checkParams(q); err != nil {
			return err
		}
	}
	if r.Method == http.MethodGet { // a refused answer to another one would hide what was done
		w.payer = auth.CallerOf(r.Context()).Share()
	}
	req := &request{
		Request: r, op: rt.op, session: session, name: name, query: q, out: w, began: now,
		creates: rt.session == inPathNew || rt.session == inBodyNew, body: holding{of: s.bodies, caller: auth.CallerOf(r.Context()).Share()},
	}
	defer req.leaveBody()
	defer req.closed()
	if named {
		if err := eventlog.ValidateClientSessionID(session); err != nil {
			return err
		}
		w.session = session
		switch err := s.own(req, session, req.creates); {
		case errors.Is(err, eventlog.ErrSessionNotFound) && rt.session == inPathOrNothing:
			return s.nothing(w)
		case err != nil:
			return err
		}
	}
	return rt.handle(s, w, req)
}

// checkParams refuses a parameter that the route would ignore: an answer to
// another question than the one asked is worse than none. Public pages and what
// is posted to a route without parameters take any, which proxies may have added.
func (rt route) checkParams(q query) error {
	known := strings.Fields(rt.params)
	if rt.method == http.MethodPost && len(known) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains(known, name) {
			return invalid(name, "is not a parameter of this route")
		}
	}
	return nil
}

// authorize decides about a session that was not known at first.
func (s *Server) authorize(r *request, session string) error {
	return s.authorizeAs(r, session, r.creates)
}

// authorizeAs is authorize for a session that the request may create, or may not.
func (s *Server) authorizeAs(r *request, session string, creates bool) error {
	if session != "" && session == r.named && creates == r.creates {
		return nil // it was before
	}
	r.out.session = session
	if err := s.allow(r.Request, r.op, session); err != nil {
		return err
	}
	return s.own(r, session, creates)
}
