package httptool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/httptool"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call runs an agent that calls an HTTP tool once, and returns the session's
// state and the types of its chunks.
func call(t *testing.T, session string, timeout time.Duration, handler http.HandlerFunc) (*projector.Tree, []string) {
	t.Helper()
	server := httptest.NewServer(handler)
	defer server.Close()
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	tool := agentloop.Tool{
		Name: "lookup", Timeout: timeout,
		Execute: httptool.Execute(server.URL+"/secret-path", &httptool.Options{
			Headers: map[string]string{"Authorization": "Bearer x", "Idempotency-Key": "configured"}, Client: client,
		}),
	}
	log := memory.New()
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "a", Tools: []agentloop.Tool{tool}, InitialState: json.RawMessage(`{"seen":[]}`),
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "call-1", Name: "lookup", Arguments: json.RawMessage(`{"q":"x"}`)}}},
			{Text: "done"},
		}, nil),
	}}, nil)
	require.NoError(t, err)
	defer loop.Stop()
	_, err = loop.Start(t.Context(), engine.StartRequest{SessionID: session, AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	state := new(projector.Tree)
	var types []string
	for r, err := range log.Follow(ctx, session, 0) {
		require.NoError(t, err)
		projector.Apply(state, r)
		if r.Call != "" && r.Kind == eventlog.KindChunk {
			types = append(types, r.Type)
		}
		if state.StreamStatus.Terminal() {
			break
		}
	}
	require.Equal(t, projector.SessionCompleted, state.Status, "a tool's failure is not the run's")
	return state, types
}

func TestTheContract(t *testing.T) {
	var body map[string]any
	var header http.Header
	var method string
	state, types := call(t, "s/é 1", 0, func(w http.ResponseWriter, r *http.Request) {
		method, header = r.Method, r.Header
		_ = json.NewDecoder(r.Body).Decode(&body)
		fmt.Fprint(w, `{"result":{"n":1.50},"patches":[{"op":"add","path":"/seen/-","value":"x"}],"events":[{"name":"found","data":{"k":1}}]}`)
	})
	run := state.Runs[0].RunID
	require.Equal(t, http.MethodPost, method)
	require.Equal(t, map[string]any{
		"toolCallId": "call-1", "toolName": "lookup", "sessionId": "s/é 1", "runId": run, "agentType": "a",
		"arguments": map[string]any{"q": "x"}, "state": map[string]any{"seen": []any{}},
	}, body)
	require.Equal(t, "Bearer x", header.Get("Authorization"))
	require.Equal(t, []string{`s/\u00e9 1:` + run + `:call-1`}, header["Idempotency-Key"], "also where one is configured")
	require.Equal(t, "application/json", header.Get("Content-Type"))
	require.Equal(t, []string{"tool_start", "custom", "state_patch", "tool_end"}, types)
	require.JSONEq(t, `{"seen":["x"]}`, state.CustomState.String())
	require.Equal(t, `{"n":1.50}`, string(state.Messages[2].Result))
}

func TestFailuresGoToTheModel(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	quote := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			answer(status, "no such key: "+r.Header.Get("Authorization"))(w, r)
		}
	}
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"status":        {answer(500, "it is on fire"), "the tool answered with status 500: it is on fire"},
		"no body":       {answer(404, ""), "the tool answered with status 404"},
		"redirect":      {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, "the tool answered with status 302"},
		"bad JSON":      {answer(200, "<html>"), `the tool's answer is not of the form {"result": …}: <html>`},
		"bad patch":     {answer(200, `{"result":1,"patches":[{"op":"remove","path":"/nothing"}]}`), `patch: operation 0 (remove "/nothing"): there is no such value`},
		"bad usage":     {answer(200, `{"result":1,"usage":{"client_tool_wait_ms":1}}`), "usage client_tool_wait_ms: the name is reserved"},
		"many events":   {answer(200, `{"result":1,"events":[{"name":"x"}`+strings.Repeat(`,{"name":"x"}`, 1000)+`]}`), "the tool's answer has more than 1000 events"},
		"bad event":     {answer(200, `{"result":1,"events":[{"name":"","data":1}]}`), "event: custom: eventName must not be empty"},
		"dropped":       {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "the tool could not be reached"},
		"quoted header": {quote(401), "the tool answered with status 401: no such key: [hidden]"},
		"in a success":  {quote(200), `the tool's answer is not of the form {"result": …}: no such key: [hidden]`},
		"a long answer": {answer(500, strings.Repeat("é", 10_000)), "the tool answered with status 500: éé"},
	} {
		t.Run(name, func(t *testing.T) {
			state, _ := call(t, "s", 0, tc.handler)
			got := state.Messages[2]
			require.True(t, strings.HasPrefix(got.Error, tc.want), got.Error)
			require.Equal(t, agentloop.CodeToolFailed, got.ErrorCode)
			require.LessOrEqual(t, len(got.Error), agentloop.MaxErrorText)
			require.NotContains(t, got.Error, "secret-path", "addresses stay out of the conversation")
			require.JSONEq(t, `{"seen":[]}`, state.CustomState.String())
		})
	}
}

// As a model's and a remote agent's texts are, and the same answer of another tool.
func TestTextThatIsNotUTF8IsReplaced(t *testing.T) {
	state, _ := call(t, "s", 0, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "{\"result\":\"caf\xe9\",\"events\":[{\"name\":\"found\",\"data\":\"\xe9\"}]}")
	})
	got := state.Messages[2]
	require.Empty(t, got.Error)
	require.Equal(t, "\"caf\uFFFD\"", string(got.Result))
}

// TestACallIsSentOnce: an endpoint that breaks the connection of a call may have carried it out. The call
// fails, and the model decides whether to repeat it.
func TestACallIsSentOnce(t *testing.T) {
	var connections []string // a request each
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if connections = append(connections, r.RemoteAddr); len(connections) == 1 {
			fmt.Fprint(w, `{"result":"done"}`)
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}))
	defer server.Close()
	turn := func(id string) scripted.Turn {
		return scripted.Turn{ToolCalls: []scripted.Call{{ID: id, Name: "pay", Arguments: json.RawMessage(`{}`)}}}
	}
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "a", Model: scripted.New([]scripted.Turn{turn("call-1"), turn("call-2"), {Text: "done"}}, nil),
		Tools: []agentloop.Tool{{Name: "pay", Execute: httptool.Execute(server.URL, &httptool.Options{
			Client: server.Client(),
		})}},
	}}, nil)
	require.NoError(t, err)
	defer loop.Stop()
	h, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	can, err := loop.CanResume(t.Context(), "s", "")
	require.NoError(t, err)
	require.Equal(t, `"done"`, string(can.State.Messages[2].Result))
	require.Equal(t, agentloop.CodeToolFailed, can.State.Messages[4].ErrorCode)
	server.Close()
	require.Len(t, connections, 2)
	require.Equal(t, connections[0], connections[1], "the second call has the idle connection of the first")
}

// TestDeadServer: the log names the host of a tool that is down, and the setting
// to look at; the model hears why, and no address.
func TestDeadServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.Listener.Addr().String()
	server.Close()
	var lines testkit.Log
	log := memory.New()
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "a", Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "call-1", Name: "lookup", Arguments: json.RawMessage(`{"q":"x"}`)}}}, {Text: "done"},
		}, nil),
		Tools: []agentloop.Tool{{Name: "lookup", Execute: httptool.Execute("http://user:hunter2@"+address+"/path?key=hunter2", nil)}},
	}}, &engine.Options{Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	require.NoError(t, err)
	defer loop.Stop()
	h, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	can, err := loop.CanResume(t.Context(), "s", "")
	require.NoError(t, err)
	require.Equal(t, "the tool could not be reached: connection refused", can.State.Messages[2].Error)
	require.Equal(t, "dial "+address+": connection refused (check tools.lookup.http.url)", causeOf(t, log))
	text := lines.String()
	require.Regexp(t, `level=WARN msg=tool.failed session=s run=run-\w+ call=call-1 tool=lookup code=tool_execution_failed `+
		`reason="connection refused" host=`+address+` check=tools.lookup.http.url`, text)
	require.NotContains(t, text, "hunter2")
}

// TestCauseOfARefusal: the record names host, status and setting for operators, and holds no secret of the URL or headers.
func TestCauseOfARefusal(t *testing.T) {
	for status, want := range map[int]string{
		401: " answered 401 Unauthorized (check tools.lookup.http.headers)", 503: " answered 503 Service Unavailable (check tools.lookup.http.url)",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		log := memory.New()
		loop, err := engine.New(log, []agentloop.Agent{{
			Name: "a", Model: scripted.New([]scripted.Turn{
				{ToolCalls: []scripted.Call{{ID: "call-1", Name: "lookup", Arguments: json.RawMessage(`{"q":"x"}`)}}}, {Text: "done"},
			}, nil),
			Tools: []agentloop.Tool{{Name: "lookup", Execute: httptool.Execute(strings.Replace(server.URL, "://", "://user:hunter2@", 1)+"/path?key=hunter2",
				&httptool.Options{Headers: map[string]string{"Authorization": "Bearer hunter2"}})}},
		}}, nil)
		require.NoError(t, err)
		h, err := loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}}})
		require.NoError(t, err)
		_, err = h.Result(t.Context())
		require.NoError(t, err)
		require.Equal(t, server.Listener.Addr().String()+want, causeOf(t, log))
		loop.Stop()
		server.Close()
	}
}

// causeOf returns the cause in the result of the session's call.
func causeOf(t *testing.T, log *memory.Log) (cause string) {
	t.Helper()
	for r, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		require.NotContains(t, string(r.Payload), "hunter2")
		if r.Type == (*fact.ToolResult)(nil).Type() {
			var f fact.ToolResult
			require.NoError(t, json.Unmarshal(r.Payload, &f))
			cause = f.Cause
		}
	}
	return cause
}

func TestTimeout(t *testing.T) {
	state, _ := call(t, "s", 10*time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client leaves
		<-r.Context().Done()
	})
	require.Equal(t, agentloop.CodeToolTimeout, state.Messages[2].ErrorCode)
	require.Equal(t, "the tool timed out after 10ms", state.Messages[2].Error)
}
