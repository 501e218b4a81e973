package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/chat"
)

// TestLabels: a session is its first caller's, however it begins, and is found
// by what that one said.
func TestLabels(t *testing.T) {
	a := newAPIOn(t, memory.New(), []agentloop.Agent{writer()}, func(o *httpapi.Options) { o.Chat = &chat.Options{} })
	chat := `{"id":"chat","messages":[{"id":"%s","role":"user","parts":[{"type":"text","text":"hi"}]}],%s}`
	require.Equal(t, 200, a.post("/start", `{"sessionId":"start","agentType":"writer","message":"hi","userId":"ann","tags":["red","blue"]}`).status)
	a.wait("start")
	require.Equal(t, 200, a.post("/chat", fmt.Sprintf(chat, "m1", `"userId":"ann","tags":["red"]`)).status)
	require.Equal(t, 200, a.post("/chat", fmt.Sprintf(chat, "m2", `"userId":"bob","tags":["green"]`)).status)
	for query, want := range map[string]int{"userId=ann": 2, "userId=bob": 0, "tag=red": 2, "tag=blue": 1, "tag=green": 0} {
		var page api.Page[api.Summary]
		a.get("/sessions?"+query).decode(t, &page)
		require.Equal(t, want, page.Total, query)
	}
	for field, bad := range map[string]string{
		"userId": `"userId":""`, "userId ": `"userId":7`, "userId  ": `"userId":"` + strings.Repeat("x", 257) + `"`,
		"tags": `"tags":"red"`, "tags ": `"tags":null`, "tags  ": `"tags":[` + strings.Repeat(`"x",`, 32) + `"x"]`,
		"tags[1]": `"tags":["a",""]`, "tags[0]": `"tags":[null]`, "tags[0] ": `"tags":["` + strings.Repeat("x", 257) + `"]`,
	} {
		for _, got := range []answer{
			a.post("/start", `{"sessionId":"new","agentType":"writer","message":"hi",`+bad+`}`), a.post("/chat", fmt.Sprintf(chat, "m3", bad)),
		} {
			require.Equal(t, map[string]any{"field": strings.TrimSpace(field)}, got.failed(t, 400, api.CodeInvalidRequest).Detail, bad)
		}
	}
	a.get("/sessions/new").failed(t, 404, api.CodeNotFound)
}
