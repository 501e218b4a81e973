package httpapi_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

// routeCase says how to call a route well, for tests that go through all of
// them. The session is one of the agent writer whose stream has ended.
type routeCase struct {
	// body of a POST; SESSION is its id as JSON, FORK that of a new one.
	body  string
	query string
	// status is the answer to who may.
	status int
	// limit is the largest body in bytes; 0: a body of any length is taken.
	limit int
	// public: without authentication. everybody's: about all sessions.
	public, everybodys bool
}

const (
	chatBody   = `{"id":"chat","sessionId":SESSION,"trigger":"submit-message","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"go on"}]}]}`
	submitBody = `{"sessionId":SESSION,"toolCallId":"c","kind":"client-tool-result","result":1}`
	chunksBody = `{"type":"text_delta","agentId":SESSION,"agentType":"writer","timestamp":1,"step":1,"delta":"more"}`
	importBody = `{"sequence":1,"time":"2026-01-02T03:04:05Z","kind":"fact","type":"session_created","agent":SESSION,"data":{"type":"session_created","agentType":"writer","sessionId":SESSION,"timestamp":1}}`
)

// routeCases are the cases of all routes, by method and pattern.
var routeCases = map[string]routeCase{
	"POST /start":                        {body: `{"sessionId":SESSION,"agentType":"writer","message":"hi"}`, status: 409, limit: api.MaxBody},
	"POST /resume":                       {body: `{"sessionId":SESSION}`, status: 409, limit: api.MaxBody},
	"POST /interrupt":                    {body: `{"sessionId":SESSION}`, status: 200, limit: api.MaxBody},
	"POST /abort":                        {body: `{"sessionId":SESSION}`, status: 200, limit: api.MaxBody},
	"POST /submit-tool-result":           {body: submitBody, status: 409, limit: api.MaxSubmitBody},
	"GET /sse":                           {status: 200},
	"GET /status":                        {status: 200},
	"GET /workspace":                     {status: 200},
	"GET /workspaces":                    {status: 200},
	"POST /chat":                         {body: chatBody, status: 200, limit: api.MaxBody},
	"GET /chat/{id}/stream":              {status: 204},
	"POST /chat/{id}/submit-tool-result": {body: `{"toolCallId":"c","kind":"client-tool-result","result":1}`, status: 409, limit: api.MaxSubmitBody},
	"POST /chat/{id}/interrupt":          {body: `{}`, status: 200, limit: api.MaxBody},
	"POST /chat/{id}/abort":              {body: `{}`, status: 200, limit: api.MaxBody},
	"GET /chat/{id}/snapshot":            {status: 200},
	"GET /chat/{id}/messages":            {status: 200},
	"GET /sessions":                      {query: "sort=updated", status: 200},
	"GET /sessions/{id}":                 {status: 200},
	"GET /sessions/{id}/records":         {query: "dead=1", status: 200},
	"GET /sessions/{id}/stream":          {status: 200},
	"GET /sessions/{id}/replay":          {query: "speed=0", status: 200},
	"GET /sessions/{id}/state":           {status: 200},
	"GET /compare":                       {status: 200},
	"GET /sessions/{id}/diff":            {status: 200},
	"GET /sessions/{id}/timeline":        {query: "from=1", status: 200},
	"GET /sessions/{id}/usage":           {status: 200},
	"GET /sessions/{id}/checkpoints":     {status: 200},
	"GET /sessions/{id}/files":           {status: 200},
	"GET /sessions/{id}/runs":            {status: 200},
	"POST /sessions/{id}/messages":       {body: `{"message":"hi"}`, status: 200, limit: api.MaxBody},
	"POST /sessions/{id}/rollback":       {body: `{"sequence":9000000000000000}`, status: 416, limit: api.MaxBody},
	"POST /sessions/{id}/fork":           {body: `{"sessionId":FORK}`, status: 200, limit: api.MaxBody},
	"POST /sessions/{id}/subscriptions":  {body: `{"ttl":"5m"}`, status: 201, limit: api.MaxBody},
	"POST /sessions/{id}/tickets":        {body: `{}`, status: 201, limit: api.MaxBody},
	"POST /chat/{id}/tickets":            {body: `{}`, status: 201, limit: api.MaxBody},
	"POST /sessions/{id}/chunks":         {body: chunksBody, status: 409, limit: api.MaxChunksBody},
	"POST /sessions/{id}/end":            {body: `{}`, status: 409, limit: api.MaxBody},
	"POST /sessions/{id}/fail":           {body: `{"error":"x"}`, status: 409, limit: api.MaxBody},
	"POST /sessions/{id}/import":         {body: importBody, status: 409},
	"DELETE /sessions/{id}":              {status: 200},
	"GET /runs":                          {status: 200},
	"GET /usage":                         {query: "by=day", status: 200},
	"GET /search":                        {query: "q=x", status: 200},
	"GET /parked":                        {status: 200},
	"GET /memories":                      {query: "q=x", status: 200},
	"POST /memories":                     {body: `{"scope":"session","id":SESSION,"content":"x"}`, status: 200, limit: api.MaxBody},
	"DELETE /memories":                   {status: 404},
	"DELETE /memories/{memoryId}":        {status: 404},
	"POST /memories/process":             {body: `{}`, everybodys: true, limit: api.MaxBody},
	"POST /retention":                    {body: `{"purgeOlderThan":"1000000h"}`, everybodys: true, limit: api.MaxBody},
	"GET /backup":                        {everybodys: true, status: 200},
	"POST /sweep":                        {body: `{}`, everybodys: true, limit: api.MaxBody},
	"POST /admin/reload":                 {body: `{}`, everybodys: true, status: 200, limit: api.MaxBody},
	"GET /":                              {public: true, status: 200},
	"GET /debugger/{file}":               {public: true, status: 200},
	"GET /healthz":                       {public: true, status: 200},
	"GET /readyz":                        {public: true, status: 200},
	"GET /metrics":                       {everybodys: true, status: 200},
	"GET /openapi.json":                  {status: 200},

	"DELETE /sessions/{id}/subscriptions": {status: 200},
}

// eachRoute calls visit with every route and its case.
func eachRoute(t *testing.T, visit func(t *testing.T, rt httpapi.TestRoute, c routeCase)) {
	t.Helper()
	for _, rt := range httpapi.RouteTable() {
		name := rt.Method + " " + rt.Pattern
		t.Run(name, func(t *testing.T) {
			c, ok := routeCases[name]
			require.True(t, ok, "a route needs a case in routeCases: who is limited to some sessions must not reach others by it")
			require.Equal(t, c.public, rt.Op == "", "only what is said to be public is")
			require.Equal(t, c.body != "", rt.Method == "POST")
			visit(t, rt, c)
		})
	}
}

// target is the route's URL for a session.
func (c routeCase) target(rt httpapi.TestRoute, session string) string {
	return c.targetOf(rt, escape(session), url.QueryEscape(session))
}

// control.targetOf is target with the session's id as it is in a path and in a
// query.
func (c routeCase) targetOf(rt httpapi.TestRoute, inPath, inQuery string) string {
	target := strings.NewReplacer("{id}", inPath, "{file}", "app.js", "{memoryId}", "m").Replace(rt.Pattern)
	var params []string
	if c.query != "" {
		params = append(params, c.query)
	}
	switch rt.NamesIn {
	case "query":
		params = append(params, "sessionId="+inQuery)
	case "both":
		params = append(params, "a="+inQuery, "b="+inQuery)
	case "scope":
		params = append(params, "scope=session", "id="+inQuery)
	}
	if len(params) > 0 {
		target += "?" + strings.Join(params, "&")
	}
	return target
}

// bodyFor is the body for a session, and for a fork of it.
func (c routeCase) bodyFor(t *testing.T, session, fork string) string {
	t.Helper()
	return strings.NewReplacer("SESSION", quoted(t, session), "FORK", quoted(t, fork)).Replace(c.body)
}
