package httpapi

import (
	"net/http"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// route is a row of the routing table.
type route struct {
	method, pattern string
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
)

var routeTable = []route{
	{"POST", "/start", OpStart, inBody, (*Server).start},
	{"POST", "/resume", OpResume, inBody, (*Server).resume},
	{"GET", "/sse", OpStream, inQuery, (*Server).sse},
	{"GET", "/status", OpStatus, inQuery, (*Server).status},
	{"GET", "/chat/{id}/snapshot", OpChatStream, inPath, (*Server).snapshot},
	{"GET", "/sessions", OpSessions, noSession, (*Server).sessions},
	{"GET", "/sessions/{id}", OpStatus, inPath, (*Server).summary},
	{"GET", "/sessions/{id}/records", OpRecords, inPath, (*Server).records},
	{"GET", "/sessions/{id}/state", OpRecords, inPath, (*Server).state},
	{"GET", "/healthz", opPublic, noSession, (*Server).healthz},
	{"GET", "/readyz", opPublic, noSession, (*Server).readyz},
}

// request is a request whose caller may do the operation, on the session if
// that is known yet.
type request struct {
	*http.Request
	op      Operation
	session string // valid; empty if noSession or inBody
	query   query
}

// routes makes a mux of the table. It has the patterns only: methods are
// looked up here, so that errors have our form.
func (s *Server) routes() *http.ServeMux {
	methods := map[string]map[string]route{}
	for _, rt := range routeTable {
		if methods[rt.pattern] == nil {
			methods[rt.pattern] = map[string]route{}
		}
		methods[rt.pattern][rt.method] = rt
	}
	mux := http.NewServeMux()
	for pattern, byMethod := range methods {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet
			}
			rt, ok := byMethod[method]
			if !ok {
				w.Header().Set("Allow", allow(byMethod))
				s.fail(w, r, errMethod)
				return
			}
			if err := s.serve(w, r, rt); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.fail(w, r, errNoRoute) })
	return mux
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
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route) error {
	q, queryErr := parseQuery(r.URL.RawQuery)
	session := ""
	switch rt.session {
	case inPath:
		session = r.PathValue("id")
	case inQuery:
		session = q.values.Get("sessionId")
	}
	if rt.op != opPublic {
		if err := s.opts.Auth(r, rt.op, session); err != nil {
			return err
		}
	}
	if queryErr != nil {
		return queryErr
	}
	if rt.session == inPath || rt.session == inQuery {
		if err := eventlog.ValidateSessionID(session); err != nil {
			return err
		}
	}
	return rt.handle(s, w, &request{Request: r, op: rt.op, session: session, query: q})
}

// authorize decides about a session that was not known at first.
func (s *Server) authorize(r *request, session string) error {
	return s.opts.Auth(r.Request, r.op, session)
}
