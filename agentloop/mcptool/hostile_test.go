package mcptool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/mcptool"
)

// message is one that a client has sent.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"` // empty: it is an answer to a request of the server
}

// results are those of a server with the tool t.
var results = map[string]string{
	"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`,
	"tools/list": `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
}

// flood is a server on stdio with the tool t. When that is called it sends requests of its own, and
// reads nothing any more.
func flood() int {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m message
		_ = json.Unmarshal(in.Bytes(), &m)
		switch {
		case m.Method == "tools/call":
			for i := 0; ; i++ {
				if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", i); err != nil {
					return 1
				}
			}
		case results[m.Method] != "":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, results[m.Method])
		case m.ID != nil:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	}
	return 0
}

// hostile is an HTTP server with the tool t. It answers as the protocol says until answer, which gets
// every other message, takes over.
func hostile(t *testing.T, answer http.HandlerFunc, tool func(http.ResponseWriter, *http.Request, message)) mcptool.Server {
	t.Helper()
	w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var m message
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &m)
		result := results[m.Method]
		switch {
		case result != "":
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		case m.Method == "tools/call":
			tool(rw, r, m)
		case m.Method == "" && answer != nil:
			answer(rw, r)
		case m.ID == nil || m.Method == "":
			rw.WriteHeader(http.StatusAccepted)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(w.Close)
	return mcptool.Server{Name: "s", URL: w.URL}
}

// sends answers a call with messages of the server's own and the result.
func sends(rw http.ResponseWriter, m message, own ...string) {
	rw.Header().Set("Content-Type", "text/event-stream")
	for _, text := range own {
		fmt.Fprintf(rw, "data: {\"jsonrpc\":\"2.0\",%s}\n\n", text)
	}
	fmt.Fprintf(rw, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}\n\n", m.ID)
}

// A server may send anything between a call and its result: it ends nothing.
func TestAServerSendsWhatItWasNotOffered(t *testing.T) {
	methods := []string{
		"ping", "roots/list", "sampling/createMessage", "elicitation/create", "completion/complete", "unknown", "tools/call",
		"notifications/cancelled", "notifications/tools/list_changed", "notifications/prompts/list_changed",
		"notifications/resources/list_changed", "notifications/resources/updated", "notifications/message", "notifications/progress",
		"notifications/elicitation/complete", "notifications/subscriptions/acknowledged", "notifications/unknown",
	}
	var own []string
	for i, method := range methods {
		for j, params := range []string{"", `,"params":null`, `,"params":{}`} {
			own = append(own, fmt.Sprintf(`"method":%q%s`, method, params), fmt.Sprintf(`"id":%d,"method":%q%s`, 100*i+j, method, params))
		}
	}
	c := open(t, hostile(t, nil, func(rw http.ResponseWriter, _ *http.Request, m message) { sends(rw, m, own...) }), nil)
	for range 2 {
		result, err := call(t, t.Context(), c, "s_t", `{}`)
		require.NoError(t, err)
		require.Equal(t, `"fine"`, result)
	}
}

// A server that never takes the answer to its own request keeps nobody from closing.
func TestAServerDoesNotTakeTheAnswerToItsRequest(t *testing.T) {
	asked, left := make(chan struct{}), make(chan struct{})
	never := func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
		close(left)
	}
	c := open(t, hostile(t, never, func(rw http.ResponseWriter, _ *http.Request, m message) { sends(rw, m, `"id":1,"method":"ping"`) }), nil)
	_, err := call(t, t.Context(), c, "s_t", `{}`)
	require.NoError(t, err)
	<-asked
	require.NoError(t, c.Close())
	<-left
}

// A list of large tools ends before they fill the memory, however few they are.
func TestAListOfLargeTools(t *testing.T) {
	pages := 0
	w := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var m message
		_ = json.NewDecoder(r.Body).Decode(&m)
		result := results[m.Method]
		if m.Method == "tools/list" {
			pages++
			result = fmt.Sprintf(`{"tools":[{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}],"nextCursor":"%d"}`,
				pages, strings.Repeat("x", 1<<20), pages)
		}
		switch {
		case result != "":
			rw.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		case m.ID == nil:
			rw.WriteHeader(http.StatusAccepted)
		default:
			http.NotFound(rw, r)
		}
	}))
	defer w.Close()
	_, err := mcptool.Open(t.Context(), mcptool.Server{Name: "s", URL: w.URL}, &mcptool.Options{ConnectTimeout: patience})
	require.EqualError(t, err, "mcptool: server s: list of tools: its tools have more than 16777216 bytes")
	require.Equal(t, 16, pages)
}

// However much a server that reads nothing sends, it is not kept for it.
func TestAServerSendsRequestsAndReadsNothing(t *testing.T) {
	server, _ := stdio(t)
	server.Env[serverMode] = "flooding"
	c := open(t, server, &mcptool.Options{StopTimeout: 10 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := call(t, ctx, c, "s_t", `{}`)
	require.ErrorContains(t, err, "its connection ended during the call")
}

// What is read of a refusal is bounded, whatever the server calls it.
func TestARefusalWithoutAnEnd(t *testing.T) {
	const most = 64 << 20
	sent := make(chan int, 1)
	c := open(t, hostile(t, nil, func(rw http.ResponseWriter, _ *http.Request, _ message) {
		rw.Header().Set("Content-Type", "text/event-stream")
		rw.WriteHeader(http.StatusBadRequest)
		n, line := 0, []byte(": "+strings.Repeat("x", 1<<20)+"\n")
		for n < most {
			written, err := rw.Write(line)
			if n += written; err != nil {
				break
			}
		}
		sent <- n
	}), nil)
	_, err := call(t, t.Context(), c, "s_t", `{}`)
	require.EqualError(t, err, "the MCP server answered with status 400 Bad Request")
	require.Less(t, <-sent, most)
}

// A server that says again and again that its list has changed does not fill the log.
func TestAChangedListIsLoggedOnce(t *testing.T) {
	const changed = `"method":"notifications/tools/list_changed"`
	var log logs
	c := open(t, hostile(t, nil, func(rw http.ResponseWriter, _ *http.Request, m message) { sends(rw, m, changed, changed, changed) }),
		&mcptool.Options{Logger: log.logger()})
	for range 2 {
		_, err := call(t, t.Context(), c, "s_t", `{}`)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close())
	require.Equal(t, 1, strings.Count(log.String(), "list of tools has changed"))
}

// A server may quote the headers that it refuses: nobody else sees them.
func TestWhatAServerQuotes(t *testing.T) {
	const key = "hunter2hunter2"
	quotes := func(rw http.ResponseWriter, r *http.Request, m message) {
		rw.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(rw, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no such key: %s"}}`, m.ID, r.Header.Get("Authorization"))
	}
	server := hostile(t, nil, quotes)
	server.Headers = map[string]string{"Authorization": "Bearer " + key}
	_, err := call(t, t.Context(), open(t, server, nil), "s_t", `{}`)
	require.EqualError(t, err, "the MCP server refused the call: no such key: [hidden]")

	locked := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var m message
		_ = json.NewDecoder(r.Body).Decode(&m)
		quotes(rw, r, m)
	}))
	defer locked.Close()
	_, err = mcptool.Open(t.Context(), mcptool.Server{Name: "s", URL: locked.URL, Headers: server.Headers}, nil)
	require.ErrorContains(t, err, "no such key: [hidden]")
	require.NotContains(t, err.Error(), key)
}
