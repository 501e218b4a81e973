package httpapi_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/projector"
)

// fuzzRequest is a request without headers.
type fuzzRequest struct{ method, target, body string }

// changes are requests that change a session of a fuzzed server, each of them
// as it is before them.
var changes = []fuzzRequest{
	{"POST", "/start", `{"sessionId":"new","agentType":"done","message":"go","state":{"n":1},"metadata":{"k":"v"}}`},
	{"POST", "/start", `{"sessionId":"new","agentType":"asker","message":[{"role":"user","content":"go","files":[{"data":"data:,x","mediaType":"text/plain"}]}]}`},
	{"POST", "/resume", `{"sessionId":"asker","message":"never mind"}`},
	{"POST", "/resume", `{"sessionId":"parent"}`},
	{"POST", "/interrupt", `{"sessionId":"slow","reason":"enough"}`},
	{"POST", "/abort", `{"sessionId":"parent","reason":"enough"}`},
	{"POST", "/submit-tool-result", `{"sessionId":"asker","toolCallId":"rm","kind":"approval-response","approved":true,"reason":"fine"}`},
	{"POST", "/submit-tool-result", `{"sessionId":"locator","toolCallId":"here","kind":"client-tool-result","result":{"lat":1}}`},
	{"POST", "/chat", `{"id":"done","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"again"}]}],"trigger":"submit-message"}`},
	{"POST", "/chat?format=text-stream-part", `{"id":"c","sessionId":"new","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"again"}]}]}`},
	{"POST", "/chat", `{"id":"done","messages":[],"trigger":"regenerate-message","messageId":"msg-1"}`},
	{"POST", "/chat/asker/submit-tool-result", `{"toolCallId":"rm","kind":"approval-response","approved":false}`},
	{"POST", "/chat/locator/submit-tool-result", `{"toolCallId":"there","kind":"client-tool-result","error":"no signal"}`},
	{"POST", "/chat/slow/interrupt", `{"reason":"enough"}`},
	{"POST", "/chat/slow/abort", ``},
	{"POST", "/sessions/done/rollback", `{"sequence":3}`},
	{"POST", "/sessions/done/rollback", `{"checkpointId":"CHECKPOINT"}`},
	{"POST", "/sessions/done/fork", `{"sequence":5,"sessionId":"copy"}`},
	{"POST", "/sessions/parent/fork", `{"messageIndex":1,"sessionId":"copy"}`},
	{"POST", "/sessions/done/fork", `{"edit":{"message":{"content":"x","index":0},"systemPrompt":"y"},"run":true,"sessionId":"copy"}`},
	{"POST", "/sessions/mine/chunks", `{"type":"text_delta","delta":"c","agentId":"mine","agentType":"writer","timestamp":1,"step":1}` + "\n" +
		`{"type":"custom","eventName":"progress","data":{"id":"x","n":1},"agentId":"mine","agentType":"writer","timestamp":1,"step":1}`},
	{"POST", "/sessions/new/chunks", `[{"type":"state_patch","patches":[{"op":"add","path":"/a","value":1}],"agentId":"new","agentType":"writer","timestamp":1,"step":1}]`},
	{"POST", "/sessions/mine/end", `{"finalOutput":{"a":1}}`},
	{"POST", "/sessions/mine/fail", `{"error":"lost"}`},
	{"POST", "/memories", `{"scope":"user","id":"u","content":"x","tags":["t"],"metadata":{"a":1}}`},
	{"POST", "/memories", `{"scope":"session","id":"done","content":"x"}`},
	{"DELETE", "/sessions/parent", ``},
}

// chats are messages as clients of the AI SDK send them.
var chats = []string{
	`[]`,
	`[{"id":"m","role":"user","metadata":{"a":1},"parts":[{"type":"text","text":"again"},{"type":"file","url":"data:,x","mediaType":"text/plain","filename":"f"}]}]`,
	`[{"id":"u","role":"user","parts":[{"type":"text","text":"go"}]},{"id":"msg-1","role":"assistant","parts":[{"type":"step-start"},` +
		`{"type":"tool-remove","toolCallId":"rm","state":"approval-responded","input":{},"approval":{"id":"APPROVAL","approved":true,"reason":"ok"}},` +
		`{"type":"tool-locate","toolCallId":"here","state":"output-available","output":{"lat":1}},` +
		`{"type":"dynamic-tool","toolName":"locate","toolCallId":"there","state":"output-error","errorText":"no signal"}]}]`,
}

// fuzzQueries are of routes that take more than a session.
var fuzzQueries = map[string]string{
	"/sessions":               "?userId=u&agentType=done&status=completed&streamStatus=ended&tag=t&parentSessionId=p&offset=0&limit=10",
	"/runs":                   "?sessionId=s&userId=u&agentType=done&status=completed&from=2026-01-01&to=1800000000000&offset=0&limit=10",
	"/usage":                  "?by=day&sessionId=s&userId=u&agentType=done&from=2026-01-01T00:00:00Z&to=1800000000000",
	"/search":                 "?q=a+%22b%22&sessionId=s&userId=u&agentType=done&offset=0&limit=10",
	"/parked":                 "?sessionId=s&offset=0&limit=10",
	"/memories":               "?scope=session&id=done&q=a+b&limit=10",
	"/sessions/{id}/records":  "?from=1&to=5&limit=3&dead=1",
	"/sessions/{id}/state":    "?at=3",
	"/sessions/{id}/diff":     "?from=1&to=4",
	"/sessions/{id}/timeline": "?from=2",
	"/sessions/{id}/runs":     "?offset=0&limit=1",
	"/chat/{id}/stream":       "?format=text-stream-part",
	"/chat/{id}/messages":     "?offset=0&limit=1",
}

// fuzzHeaders are headers that mean something.
var fuzzHeaders = []string{
	"", "Last-Event-ID: 3", "X-Resume-From-Sequence: 2\nX-Existing-Message-Id: msg-1", "X-Helix-Agent: asker",
	"Idempotency-Key: k\nHelix-Expected-Sequence: 0", "Content-Type: application/json\nX-Request-Id: r-1",
	"Origin: https://app.example\nAccess-Control-Request-Method: POST", "Origin: https://other.example\nSec-Fetch-Site: cross-site",
	"Authorization: Bearer x\nAccept: text/event-stream", "Transfer-Encoding: chunked",
}

// fuzzRequests are requests for every route. Those of a route that is about one
// session name each.
func fuzzRequests(t testing.TB) (all []fuzzRequest) {
	exported := exportOf(t, "done")
	ids := fuzzIDs(t)
	for _, r := range changes {
		all = append(all, fuzzRequest{r.method, r.target, ids.Replace(r.body)})
	}
	all = append(all,
		fuzzRequest{"POST", "/sessions/new/import", strings.ReplaceAll(exported, `"done"`, `"new"`)},
		fuzzRequest{"POST", "/sessions/done/import", exported},
		fuzzRequest{"POST", "/retention", `{"purgeOlderThan":"72h","dropOlderThan":"1h"}`},
		fuzzRequest{"POST", "/admin/reload", `{}`},
		fuzzRequest{"POST", "/memories/process", `{}`},
		fuzzRequest{"DELETE", "/memories?scope=session&id=done", ""},
		fuzzRequest{"DELETE", "/memories/m?scope=user&id=u", ""},
		fuzzRequest{"OPTIONS", "/sse", ""},
		fuzzRequest{"HEAD", "/sse?sessionId=slow&fromSequence=1", ""},
		fuzzRequest{"GET", "/sessions/%2e%2e%2fdone/state?at=18446744073709551615", ""},
	)
	for _, r := range httpapi.Routes() {
		for _, session := range fuzzSessions {
			target := strings.ReplaceAll(r.Pattern, "{id}", session)
			if target == r.Pattern {
				target += "?sessionId=" + session
			}
			all = append(all, fuzzRequest{r.Method, target, ""})
			if query := fuzzQueries[r.Pattern]; query != "" && r.Method == "GET" {
				all = append(all, fuzzRequest{r.Method, strings.ReplaceAll(r.Pattern, "{id}", session) + query, ""})
			}
		}
	}
	return all
}

// exportOf is a session as POST …/import takes it.
func exportOf(t testing.TB, session string) string {
	records, err := fuzzRecords()
	require.NoError(t, err)
	var lines bytes.Buffer
	for _, r := range records {
		if r.session == session {
			raw, err := json.Marshal(r.Record)
			require.NoError(t, err)
			lines.Write(append(raw, '\n'))
		}
	}
	return lines.String()
}

// The requests from which fuzzing starts do what they say.
func TestFuzzSeedsAreAccepted(t *testing.T) {
	t.Parallel()
	for _, r := range fuzzRequests(t)[:len(changes)+1] { // and an import
		inFuzzWorld(t, func(w *fuzzWorld) {
			before := w.heads()
			got, ok := w.ask(r.method, r.target, "", []byte(r.body))
			require.True(w.t, ok)
			assert.Equal(w.t, 200, got.Code, "%v: %s", r, got.Body)
			w.check(r.target, got)
			assert.NotEqual(w.t, before, w.heads(), "%v", r)
		})
	}
}

// fuzzIDs puts the ids of the seeded sessions into requests: APPROVAL is what
// asker waits for, CHECKPOINT the last one of done.
func fuzzIDs(t testing.TB) *strings.Replacer {
	records, err := fuzzRecords()
	require.NoError(t, err)
	trees := map[string]*projector.Tree{}
	for _, r := range records {
		if trees[r.session] == nil {
			trees[r.session] = new(projector.Tree)
		}
		projector.Apply(trees[r.session], r.Record)
	}
	_, call := trees["asker"].OpenCall("rm")
	require.NotNil(t, call)
	checkpoints := trees["done"].Checkpoints
	require.NotEmpty(t, checkpoints)
	return strings.NewReplacer("APPROVAL", call.Pending.ApprovalID, "CHECKPOINT", checkpoints[len(checkpoints)-1].ID)
}
