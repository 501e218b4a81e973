package inspect

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// answering returns a daemon that answers each path with JSON; what is not
// there is not found.
func answering(asked *[]string, answers map[string]string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		query, _ := url.QueryUnescape(r.URL.Query().Encode())
		*asked = append(*asked, r.URL.Path+"?"+query)
		if strings.HasSuffix(r.URL.Path, "/records") {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			answer = `{"error":"not this","code":"FORBIDDEN"}`
		}
		_, _ = w.Write([]byte(answer))
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// conversation has each kind of message.
func conversation() []projector.Message {
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	return []projector.Message{
		{Role: projector.RoleUser, Sequence: 12, Content: "Look at this,\nplease\x1b[2J.", Files: []fact.MessageFile{{MediaType: "image/png", Filename: "x.png"}}},
		{Role: projector.RoleAssistant, Sequence: 20, Parts: []fact.TurnPart{
			{Reasoning: "I had better look."}, {Text: "Let me look."},
			{ToolCall: &fact.ToolCall{ID: "c1", Name: "look", Arguments: raw(`{"city":"Rome"}`)}},
			{Source: &fact.Source{ID: "1", URL: "https://example.com"}}, {File: &fact.MessageFile{MediaType: "text/csv"}},
		}},
		{Role: projector.RoleTool, Sequence: 22, ToolCallID: "c1", ToolName: "look", Result: raw(`{"sky":"sun\u009b"}`)},
		{Role: projector.RoleTool, Sequence: 23, ToolCallID: "c2", ToolName: "look", Error: "no station", ErrorCode: "tool_error"},
		{Role: projector.RoleTool, Sequence: 24, ToolCallID: "c3", ToolName: "pay", Error: "denied", Denial: &projector.Denial{Reason: "Too much."}},
	}
}

const patchShown = `[
	{"op":"add","path":"/customState/seen/a~1b","value":"sun"},
	{"op":"replace","path":"/customState/asked","value":12345678901234567890},
	{"op":"replace","path":"/customState/list/0","value":2},
	{"op":"remove","path":"/customState/old"},
	{"op":"move","from":"/customState/x","path":"/customState/y"},
	{"op":"replace","path":"/status","value":"completed"},
	{"op":"add","path":"/children/s-sub-c4/customState/words","value":3},
	{"op":"add","path":"/messages/-","value":{"role":"user"}},
	{"op":"replace","path":"/head","value":24},
	{"op":"replace","path":"/version","value":4}
]`

const stateBefore = `{"sequence":10,"state":{"status":"active","head":10,"customState":{"asked":12345678901234567889,"list":[1],"old":{"deep":"<b>"}}}}`

// A difference is printed with the earlier value.
func TestDiff(t *testing.T) {
	forth := `{"from":10,"to":24,"durationMs":1500,"cost":0.0123,"usage":{"prompt":54,"completion":61,"total":115},"messages":` +
		encoded(t, conversation()) + `,"toolCalls":[
		{"sessionId":"s","toolCallId":"c1","toolName":"look","before":"","after":"done","result":{"sky":"sun"}},
		{"sessionId":"s-sub-c4","toolCallId":"c2","toolName":"look","before":"waiting","after":"failed","error":"no station"}],"patch":` + patchShown + `}`
	back := `{"from":24,"to":10,"durationMs":-1500,"unpriced":["odd"],"usage":{"prompt":-54,"completion":-61,"total":-115},"messages":[],"toolCalls":[
		{"sessionId":"s","toolCallId":"c1","toolName":"look","before":"done","after":""}],"patch":[
		{"op":"remove","path":"/messages/2"},{"op":"remove","path":"/messages/1"},{"op":"replace","path":"/head","value":10}]}`
	var asked []string
	paths := func(diff string) map[string]string {
		return map[string]string{"/sessions/s/diff": diff, "/sessions/s/state": stateBefore}
	}
	for name, c := range map[string]struct {
		answers map[string]string
		args    []string
		asked   string
	}{
		"forth":    {paths(forth), []string{"10..24"}, "/sessions/s/diff?from=10&to=24"},
		"colored":  {paths(forth), []string{"10..", "--color", "always"}, "/sessions/s/diff?from=10"},
		"all":      {paths(forth), []string{"..24", "--all"}, "/sessions/s/diff?to=24"},
		"back":     {paths(back), []string{"24..10"}, "/sessions/s/diff?from=24&to=10"},
		"no-state": {map[string]string{"/sessions/s/diff": forth}, nil, "/sessions/s/diff?"},
	} {
		asked = nil
		out, err := told(t, answering(&asked, c.answers), append([]string{"diff", "s"}, c.args...)...)
		require.NoError(t, err, name)
		golden(t, "diff/"+name+".txt", out)
		require.Equal(t, c.asked, asked[0], name)
	}
	out, err := told(t, answering(&asked, paths(forth)), "diff", "s", "10..24", "--json")
	require.NoError(t, err)
	require.Equal(t, forth+"\n", out, "as the daemon answers")

	for text, want := range map[string]string{
		"10": "neither a range of sequences", "a..b": "neither a range of sequences", "1..99999999999999999999": "99999999999999999999 is no sequence",
	} {
		_, err := told(t, answering(&asked, nil), "diff", "s", text)
		require.ErrorContains(t, err, want)
	}
}

func TestMoments(t *testing.T) {
	n := uint64(10)
	for text, want := range map[string]source.Point{
		"s": {Session: "s"}, "s@10": {Session: "s", At: &n}, "a@b": {Session: "a@b"}, "a@b@10": {Session: "a@b", At: &n}, "a@10@": {Session: "a@10"}, "a b/é@10": {Session: "a b/é", At: &n},
	} {
		got, err := source.ParsePoint(text)
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	_, err := source.ParsePoint("s@99999999999999999999")
	require.ErrorContains(t, err, "is no sequence")
}
