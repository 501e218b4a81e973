//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/deployment"
)

// place is where a request names a session. {path}, {query} and {body} stand
// for the disguised id, {own} for one of the caller's own.
type place struct{ path, query, body string }

// places are the requests of each route, by method and pattern. A route without
// one fails the suite.
var places = map[string][]place{
	"POST /start":                  {{body: `{"sessionId":{body},"agentType":"speaker","message":"hi"}`}},
	"POST /resume":                 {{body: `{"sessionId":{body},"message":"hi"}`}},
	"POST /interrupt":              {{body: `{"sessionId":{body}}`}},
	"POST /abort":                  {{body: `{"sessionId":{body}}`}},
	"POST /submit-tool-result":     {{body: `{"sessionId":{body},"toolCallId":"ask","result":1}`}},
	"GET /sse":                     {{query: "sessionId={query}"}, {query: "sessionId={own}&sessionId={query}"}},
	"GET /status":                  {{query: "sessionId={query}"}},
	"GET /workspace":               {{query: "sessionId={query}"}},
	"GET /workspaces":              {{query: "sessionId={query}"}},
	"POST /chat":                   {{body: chat(`"id":{body}`)}, {body: chat(`"id":"{own}-chat","sessionId":{body}`)}},
	"POST /memories":               {{body: `{"scope":"session","id":{body},"content":"said"}`}},
	"POST /memories/process":       {{}},
	"POST /retention":              {{body: `{"maxAge":"1s"}`}},
	"POST /sweep":                  {{}},
	"POST /admin/reload":           {{}},
	"GET /backup":                  {{}},
	"GET /sessions":                {{}, {query: "parentSessionId={query}"}, {query: "userId=" + victimUser}},
	"GET /runs":                    {{}, {query: "sessionId={query}"}, {query: "userId=" + victimUser}},
	"GET /usage":                   {{query: "by=agent"}, {query: "by=agent&sessionId={query}"}, {query: "by=agent&userId=" + victimUser}},
	"GET /search":                  {{query: "q=" + marker}, {query: "q=" + marker + "&sessionId={query}"}},
	"GET /parked":                  {{}, {query: "sessionId={query}"}},
	"GET /compare":                 {{query: "a={own}&b={query}"}, {query: "a={query}&b={own}"}},
	"GET /memories":                {{query: "scope=session&id={query}"}, {query: "scope=user&id=" + victimUser}},
	"DELETE /memories":             {{query: "scope=session&id={query}"}, {query: "scope=user&id=" + victimUser}},
	"DELETE /memories/{memoryId}":  {{query: "scope=session&id={query}"}, {query: "scope=user&id=" + victimUser}},
	"POST /sessions/{id}/fork":     {{path: "{path}", body: `{"atSequence":1,"sessionId":"{own}-fork"}`}, {path: "{own}", body: `{"atSequence":1,"sessionId":{body}}`}},
	"POST /sessions/{id}/rollback": {{path: "{path}", body: `{"toSequence":1}`}},
	"POST /sessions/{id}/messages": {{path: "{path}", body: `{"message":"hi"}`}},
	"POST /sessions/{id}/import":   {{path: "{path}", body: importLine}, {path: "{own}-import", body: importLine}},
	"POST /sessions/{id}/chunks":   {{path: "{path}", body: chunkLine}, {path: "{own}-chunks", body: chunkLine}},
	"POST /chat/{id}/submit-tool-result": {
		{path: "{path}", body: `{"toolCallId":"ask","result":1}`}, {path: "{own}", body: `{"sessionId":{body},"toolCallId":"ask","result":1}`},
	},
	"GET /":                {{}},
	"GET /debugger/{file}": {{path: "{path}"}},
	"GET /healthz":         {{}},
	"GET /readyz":          {{}},
	"GET /metrics":         {{}},
	"GET /openapi.json":    {{}},
}

const (
	importLine = `{"sessionId":{body},"sequence":1,"kind":"chunk"}` + "\n"
	chunkLine  = `[{"type":"text_delta","agentId":{body},"agentType":"x","step":0,"timestamp":1,"delta":"forged"}]`
)

func chat(ids string) string {
	return `{` + ids + `,"messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]}`
}

// placesOf are the requests of a route. One with a session in its path, and
// nothing else, needs no entry.
func placesOf(r httpapi.RouteInfo) ([]place, error) {
	if found, ok := places[r.Method+" "+r.Pattern]; ok {
		return found, nil
	}
	if strings.Contains(r.Pattern, "{id}") {
		return []place{{path: "{path}", body: "{}"}}, nil
	}
	return nil, fmt.Errorf("%s %s is not attacked: say in places how it names a session", r.Method, r.Pattern)
}

// request is what an attacker sends.
type request struct{ method, path, query, body string }

func (p place) with(r httpapi.RouteInfo, d disguise, victim, own string) request {
	fill := strings.NewReplacer("{path}", d.inPath(victim, own), "{query}", d.inQuery(victim, own), "{body}", d.inBody(victim, own), "{own}", own).Replace
	at := r.Pattern
	for _, name := range []string{"{id}", "{file}", "{memoryId}"} {
		segment := p.path
		if segment == "" {
			segment = "{path}"
		}
		at = strings.Replace(at, name, segment, 1)
	}
	q := request{r.Method, fill(at), fill(p.query), ""}
	if r.Method == http.MethodPost {
		q.body = fill(p.body)
	}
	return q
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// maxAnswer is how much of an answer is read, in bytes, and maxWait how long: a
// stream that is open is an answer.
const (
	maxAnswer = 1 << 20
	maxWait   = 20 * time.Second
)

// send sends a request of the attacker's, its path as it is written.
func (w *world) send(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	base, err := url.Parse(w.node.URL)
	if err != nil {
		return answer{}, err
	}
	req := (&http.Request{
		Method: q.method, URL: &url.URL{Scheme: "http", Host: base.Host, Opaque: q.path, RawQuery: q.query}, Host: base.Host,
		Header: http.Header{"Authorization": {"Bearer " + attackerToken}}, Body: io.NopCloser(strings.NewReader(q.body)), ContentLength: int64(len(q.body)),
	}).WithContext(ctx)
	if q.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden {
		w.forbidden.Add(1)
	}
	a := answer{status: resp.StatusCode, header: resp.Header}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		raw := make([]byte, 64<<10)
		n, _ := resp.Body.Read(raw) // the first events
		a.body = string(raw[:n])
		return a, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	a.body = string(raw)
	return a, err
}

// ask is send, repeated for as long as the attacker is refused because it sends too
// many requests a second: that answer is about no session.
func (w *world) ask(ctx context.Context, q request) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, maxWait, fmt.Errorf("still %s after %s", api.CodeRateLimited, maxWait))
	defer cancel()
	for {
		a, err := w.send(ctx, q)
		if err != nil || !rateLimited(a) {
			return a, err
		}
		if err := deployment.Sleep(ctx, retryAfter(a)); err != nil {
			return a, err
		}
	}
}

func rateLimited(a answer) bool {
	return a.status == http.StatusTooManyRequests && strings.Contains(a.body, string(api.CodeRateLimited))
}

// retryAfter is how long an answer asks its caller to wait, at least one second.
func retryAfter(a answer) time.Duration {
	seconds, _ := strconv.Atoi(a.header.Get("Retry-After"))
	return max(1, time.Duration(seconds)) * time.Second
}

// impersonate sends every request of every route with every disguise of a session of the
// victim's, and of one that does not exist. The two answers must not differ: what exists
// is not revealed either.
func (w *world) impersonate(ctx context.Context) error {
	sent := 0
	for _, r := range httpapi.Routes() {
		all, err := placesOf(r)
		if err != nil {
			return err
		}
		for _, p := range all {
			for _, d := range disguises {
				if !slices.ContainsFunc([]string{p.path, p.query, p.body, r.Pattern}, func(s string) bool { return strings.Contains(s, "{") }) && d.name != disguises[0].name {
					continue // it names no session
				}
				var got [2]answer
				for i, id := range []string{w.secret(0), absentSession} {
					q := p.with(r, d, id, ownSession)
					if got[i], err = w.ask(ctx, q); err != nil {
						return fmt.Errorf("%s %s (%s): %w", q.method, q.path, d.name, err)
					}
					sent++
					if err := harmless(got[i]); err != nil {
						return fmt.Errorf("%s %s?%s %.200s (%s): %d: %w: %.300s", q.method, q.path, q.query, q.body, d.name, got[i].status, err, got[i].body)
					}
				}
				if there, absent := shown(got[0], w.secret(0)), shown(got[1], absentSession); refused(got[0]) && there != absent {
					return fmt.Errorf("%s %s (%s): a session that exists is answered otherwise than one that does not:\n%.300s\n%.300s", r.Method, r.Pattern, d.name, there, absent)
				}
			}
		}
	}
	w.note("%d requests on %d routes, %d disguises", sent, len(httpapi.Routes()), len(disguises))
	return nil
}

// harmless looks for what the victim said, and for a failure of the server.
func harmless(a answer) error {
	for _, secret := range []string{marker, victimPrefix + "0 says", "victim-token"} {
		if strings.Contains(a.body, secret) || strings.Contains(fmt.Sprint(a.header), secret) {
			return fmt.Errorf("the answer holds %q", secret)
		}
	}
	if a.status >= 500 && a.status != http.StatusNotImplemented && a.status != http.StatusServiceUnavailable {
		return fmt.Errorf("the server failed")
	}
	return nil
}

func refused(a answer) bool {
	return a.status == http.StatusForbidden || a.status == http.StatusNotFound
}

// shown is what an answer says, whichever session it was asked about.
func shown(a answer, session string) string {
	said := fmt.Sprint(a.status, " ", a.body)
	for _, form := range []string{session, strings.ToUpper(session), session[1:]} {
		said = strings.ReplaceAll(said, form, "ID")
	}
	return requestID.ReplaceAllString(said, "")
}

var requestID = regexp.MustCompile(`"requestId":"[^"]*"`)
