package httpapi

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// route is a row of the routing table.
type route struct {
	method, pattern string
	params          string    // the query's parameters
	op              Operation // opPublic: no authentication
	session         source
	handle          func(*Server, http.ResponseWriter, *request) error
}

// source tells where a request names its session.
type source int

const (
	noSession source = iota
	inPath           // as {id}
	inQuery          // as sessionId
	inBody           // the handler authorizes it
	inBoth           // two, as a and b; the handler authorizes them
	inScope          // as id, with scope=session; the handler authorizes it
)

var routeTable = []route{
	{"POST", "/start", "", OpStart, inBody, (*Server).start},
	{"POST", "/resume", "", OpResume, inBody, (*Server).resume},
	{"POST", "/interrupt", "", OpInterrupt, inBody, (*Server).interrupt},
	{"POST", "/abort", "", OpAbort, inBody, (*Server).abort},
	{"POST", "/submit-tool-result", "", OpSubmitToolResult, inBody, (*Server).submitToolResult},
	{"GET", "/sse", "sessionId fromSequence", OpStream, inQuery, (*Server).sse},
	{"GET", "/status", "sessionId", OpStatus, inQuery, (*Server).status},
	{"GET", "/workspace", "sessionId", OpWorkspace, inQuery, (*Server).workspace},
	{"GET", "/workspaces", "sessionId", OpWorkspace, inQuery, (*Server).workspace},
	{"POST", "/chat", "format", OpChat, inBody, hosted((*Server).postChat)},
	{"GET", "/chat/{id}/stream", "format", OpChatStream, inPath, hosted((*Server).chatStream)},
	{"POST", "/chat/{id}/submit-tool-result", "", OpChatSubmitToolResult, inPath, hosted((*Server).chatSubmit)},
	{"POST", "/chat/{id}/interrupt", "", OpChatInterrupt, inPath, hosted((*Server).chatInterrupt)},
	{"POST", "/chat/{id}/abort", "", OpChatAbort, inPath, hosted((*Server).chatAbort)},
	{"GET", "/chat/{id}/snapshot", "includePartialContent", OpChatStream, inPath, (*Server).snapshot},
	{"GET", "/chat/{id}/messages", "offset limit includeReasoning includeToolResults", OpChatStream, inPath, (*Server).messages},
	{"GET", "/sessions", "userId agentType status tag metadata from to parentSessionId sort offset limit", OpSessions, noSession, (*Server).sessions},
	{"GET", "/sessions/{id}", "", OpStatus, inPath, (*Server).summary},
	{"GET", "/sessions/{id}/records", "from to limit dead follow kind type agent run call", OpRecords, inPath, (*Server).records},
	{"GET", "/sessions/{id}/stream", "fromSequence", OpStream, inPath, (*Server).storeStream},
	{"GET", "/sessions/{id}/replay", "from to speed maxPause", OpStream, inPath, (*Server).replay},
	{"GET", "/sessions/{id}/state", "at", OpRecords, inPath, (*Server).state},
	{"GET", "/sessions/{id}/diff", "from to only", OpRecords, inPath, (*Server).diff},
	{"GET", "/sessions/{id}/timeline", "from", OpRecords, inPath, (*Server).timeline},
	{"GET", "/sessions/{id}/usage", "offset limit", OpStatus, inPath, (*Server).usage},
	{"GET", "/sessions/{id}/checkpoints", "offset limit", OpStatus, inPath, (*Server).checkpoints},
	{"GET", "/sessions/{id}/runs", "offset limit", OpStatus, inPath, (*Server).runs},
	{"GET", "/compare", "a aAt b bAt", OpRecords, inBoth, (*Server).compare},
	{"POST", "/sessions/{id}/messages", "", OpStart, inPath, (*Server).sendMessage},
	{"POST", "/sessions/{id}/rollback", "", OpResume, inPath, (*Server).rollback},
	{"POST", "/sessions/{id}/fork", "", OpStart, inPath, (*Server).fork},
	{"POST", "/sessions/{id}/subscriptions", "", OpRecords, inPath, (*Server).subscribe},
	{"POST", "/sessions/{id}/chunks", "", OpAppend, inPath, (*Server).chunks},
	{"POST", "/sessions/{id}/end", "", OpAppend, inPath, (*Server).end},
	{"POST", "/sessions/{id}/fail", "", OpAppend, inPath, (*Server).failStream},
	{"POST", "/sessions/{id}/import", "", OpImport, inPath, (*Server).importRecords},
	{"DELETE", "/sessions/{id}", "", OpErase, inPath, (*Server).erase},
	{"GET", "/runs", "sessionId userId agentType status from to offset limit", OpSessions, noSession, (*Server).allRuns},
	{"GET", "/usage", "by sessionId userId agentType from to", OpSessions, noSession, (*Server).usageBy},
	{"GET", "/search", "q sessionId userId agentType offset limit", OpSearch, noSession, (*Server).search},
	{"GET", "/parked", "sessionId offset limit", OpSessions, noSession, (*Server).parked},
	{"GET", "/memories", "scope id q offset limit", OpMemory, inScope, (*Server).memories},
	{"POST", "/memories", "", OpMemory, inBody, (*Server).saveMemory},
	{"DELETE", "/memories", "scope id", OpErase, inScope, (*Server).eraseMemories},
	{"DELETE", "/memories/{memoryId}", "scope id", OpMemory, inScope, (*Server).forgetMemory},
	{"POST", "/memories/process", "", OpAdmin, noSession, (*Server).processMemories},
	{"POST", "/retention", "", OpRetain, noSession, (*Server).retain},
	{"GET", "/backup", "rate", OpBackup, noSession, (*Server).backup},
	{"POST", "/sweep", "", OpErase, noSession, (*Server).sweep},
	{"POST", "/admin/reload", "", OpAdmin, noSession, (*Server).reload},
	{"GET", "/", "", opPublic, noSession, (*Server).debugger}, // it asks itself
	{"GET", "/debugger/{file}", "", opPublic, noSession, (*Server).debuggerFile},
	{"GET", "/healthz", "", opPublic, noSession, (*Server).healthz},
	{"GET", "/readyz", "", opPublic, noSession, (*Server).readyz},
	{"GET", "/metrics", "", opPublic, noSession, (*Server).metrics},
	{"GET", "/openapi.json", "", opPublic, noSession, (*Server).openapi},
}

// request is a request whose caller may do the operation, on the session if
// that is known yet.
type request struct {
	*http.Request
	op      Operation
	session string // valid; empty unless inPath or inQuery
	name    string // what stands for {…} in the path
	query   query
	out     *tracker
	began   *settings // those by which it was let in
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
	for _, rt := range routeTable {
		if id, ok := rt.match(segments); ok {
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

func (rt route) match(segments []string) (id string, ok bool) {
	pattern := strings.Split(rt.pattern, "/")
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
	session := ""
	switch rt.session {
	case inPath:
		session = name
	case inQuery:
		session = q.values.Get("sessionId")
	}
	if err := s.checkOrigin(r); err != nil {
		return err
	}
	now := s.settings.Load()
	if rt.op != opPublic {
		if err := now.auth(r, rt.op, session); err != nil {
			return err
		}
	}
	if queryErr != nil {
		return queryErr
	}
	if err := rt.checkParams(q); err != nil {
		return err
	}
	if rt.session == inPath || rt.session == inQuery {
		if err := eventlog.ValidateClientSessionID(session); err != nil {
			return err
		}
		w.session = session
	}
	return rt.handle(s, w, &request{Request: r, op: rt.op, session: session, name: name, query: q, out: w, began: now})
}

// checkParams refuses a parameter that the route would ignore: an answer to
// another question than the one asked is worse than none. Public pages and what
// is posted to a route without parameters take any, which proxies may have added.
func (rt route) checkParams(q query) error {
	known := strings.Fields(rt.params)
	if rt.op == opPublic || rt.method == http.MethodPost && len(known) == 0 {
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
	r.out.session = session
	return s.auth()(r.Request, r.op, session)
}
