package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

func TestBadInputChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	d.start()
	w.run(t, d, "good", nil)
	before := d.listed()

	send := func(path, body string) (int, map[string]any) {
		resp, err := client.Post(d.url+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		return d.answer(resp)
	}
	start := func(id string) string {
		return fmt.Sprintf(`{"sessionId":"%s","agentType":"walker","message":"Go."}`, id)
	}
	for name, tc := range map[string]struct {
		path, body, code string
		status           int
	}{
		"malformed JSON":        {"/start", `{"sessionId":`, "INVALID_REQUEST", 400},
		"not an object":         {"/start", `[]`, "INVALID_REQUEST", 400},
		"trailing garbage":      {"/start", start("x") + "}", "INVALID_REQUEST", 400},
		"invalid UTF-8":         {"/start", start("x\xff"), "INVALID_REQUEST", 400},
		"unknown agent":         {"/start", `{"sessionId":"x","agentType":"nobody","message":"Go."}`, "NOT_FOUND", 404},
		"no message":            {"/start", `{"sessionId":"x","agentType":"walker"}`, "INVALID_REQUEST", 400},
		"a number as a message": {"/start", `{"sessionId":"x","agentType":"walker","message":5}`, "INVALID_REQUEST", 400},
		"an empty id":           {"/start", start(""), "INVALID_REQUEST", 400},
		"NUL":                   {"/start", start(`a\u0000b`), "INVALID_REQUEST", 400},
		"a control character":   {"/start", start(`a\u001bb`), "INVALID_REQUEST", 400},
		"300 bytes":             {"/start", start(strings.Repeat("x", 300)), "INVALID_REQUEST", 400},
		"a finished session":    {"/start", start("good"), "ALREADY_COMPLETED", 409},
		"resume of nothing":     {"/resume", `{"sessionId":"nobody"}`, "NOT_FOUND", 404},
		"resume of the end":     {"/resume", `{"sessionId":"good"}`, "ALREADY_COMPLETED", 409},
	} {
		status, answer := send(tc.path, tc.body)
		require.Equal(t, tc.status, status, "%s: %v", name, answer)
		require.Equal(t, tc.code, answer["code"], name)
		require.NotEmpty(t, answer["error"], name)
	}
	for name, tc := range map[string]struct {
		path, code string
		status     int
	}{
		"unknown session":       {"/sse?sessionId=nobody", "NOT_FOUND", 404},
		"no session":            {"/sse", "INVALID_REQUEST", 400},
		"a cursor ahead":        {"/sse?sessionId=good&fromSequence=99999", "CURSOR_AHEAD", 416},
		"a negative cursor":     {"/sse?sessionId=good&fromSequence=-1", "INVALID_REQUEST", 400},
		"a state ahead":         {"/sessions/good/state?at=99999", "CURSOR_AHEAD", 416},
		"a state of nobody":     {"/sessions/nobody/state", "NOT_FOUND", 404},
		"a snapshot of nobody":  {"/chat/nobody/snapshot", "NOT_FOUND", 404},
		"NUL in a path":         {"/sessions/a%00b/state", "INVALID_REQUEST", 400},
		"300 bytes in a path":   {"/sessions/" + strings.Repeat("x", 300) + "/state", "INVALID_REQUEST", 400},
		"an unknown path":       {"/nothing/here", "NOT_FOUND", 404},
		"the wrong method":      {"/start", "METHOD_NOT_ALLOWED", 405},
		"status of nobody":      {"/status?sessionId=nobody", "NOT_FOUND", 404},
		"a filter as a pattern": {"/sessions/%3E/state", "NOT_FOUND", 404},
	} {
		status, answer := d.get(tc.path)
		require.Equal(t, tc.status, status, "%s: %v", name, answer)
		require.Equal(t, tc.code, answer["code"], name)
	}
	require.Equal(t, before, d.listed(), "nothing has changed")
}

// listed is what a daemon lists of its sessions once the rows have caught up
// with the log.
func (d *daemon) listed() (answer map[string]any) {
	d.t.Helper()
	require.Eventually(d.t, func() bool {
		_, answer = d.get("/sessions")
		return answer["current"] == true
	}, 2*time.Minute, 10*time.Millisecond)
	return answer
}

func TestOddSessionIDsKeepToThemselves(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	w := newWorld(t)
	d := newDaemon(t, "serve", "--config", w.config, "--data-dir", filepath.Join(t.TempDir(), "data"), "--allow-unauthenticated")
	d.start()
	ids := []string{"*", ">", "a.b", "a/b", "a b", "é", "..", "a", "%2A", "a?b#c", "a+b"}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var followers []*follower
	for _, id := range ids {
		status, answer := d.post("/start", map[string]any{"sessionId": id, "agentType": "walker", "message": "I am " + id})
		require.Equal(t, http.StatusOK, status, "%v", answer)
		require.Equal(t, id, answer["sessionId"])
		followers = append(followers, follow(ctx, d.url, id))
	}
	for i, id := range ids {
		<-followers[i].done
		records := d.records(id)
		followers[i].checkAgainst(t, records)
		for _, r := range records {
			require.Equal(t, id, r.Agent, "a record of another session")
		}
		path := "/sessions/" + strings.ReplaceAll(url.PathEscape(id), ".", "%2E")
		status, state := d.get(path + "/state")
		require.Equal(t, http.StatusOK, status)
		messages := state["state"].(map[string]any)["messages"].([]any)
		require.Equal(t, "I am "+id, messages[0].(map[string]any)["content"])
	}
}
