package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/openai"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// gatedModel is a model that answers when it is let.
type gatedModel struct{ open chan struct{} }

func (g gatedModel) Generate(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	if err := emit(model.TextDelta{Text: "waiting"}); err != nil {
		return model.Answer{}, err
	}
	select {
	case <-g.open:
	case <-ctx.Done():
		return model.Answer{}, &model.Error{Code: model.CodeProvider, Message: "cancelled", Cause: ctx.Err()}
	}
	return model.Answer{Model: "gate", StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: " done"})
}

func agents(g gatedModel) []agentloop.Agent {
	return []agentloop.Agent{
		{Name: "gated", Model: g},
		{Name: "echo", Model: scripted.New([]scripted.Turn{{Text: "hello"}}, nil)},
		{Name: "broken", Model: scripted.New([]scripted.Turn{{Err: &model.Error{Code: "provider_auth_failed", Message: "bad key"}}}, nil)},
	}
}

func TestStartAndStream(t *testing.T) {
	t.Parallel()
	g := gatedModel{make(chan struct{})}
	a := newAPIOn(t, newLog(t), agents(g))
	body := `{"sessionId":"s","agentType":"gated","message":"hi","state":{"k":[1,"<&>"]},"metadata":{"a":"b"},"later":{"x":1}}`
	got := a.post("/start", body)
	require.Equal(t, 200, got.status, got.body)
	var first engine.Started
	got.decode(t, &first)
	require.Equal(t, "s", first.SessionID)
	require.Equal(t, "s", first.StreamID)
	require.NotEmpty(t, first.RunID)
	s := a.stream("/sse?sessionId=s")
	for text := ""; text != "waiting"; {
		_, text = s.chunk()
	}

	var status api.Status
	a.get("/status?sessionId=s").decode(t, &status)
	require.Equal(t, "running", status.Status)
	require.True(t, status.IsExecuting)
	require.Equal(t, first.RunID, status.RunID)
	require.JSONEq(t, `{"k":[1,"<&>"]}`, string(status.State))

	var again engine.Started
	a.post("/start", body).decode(t, &again)
	require.Equal(t, first, again, "idempotent")
	a.post("/resume", `{"sessionId":"s"}`).decode(t, &again)
	require.Equal(t, first, again)
	a.post("/resume", `{"sessionId":"s","message":"more"}`).failed(t, 409, api.CodeAlreadyRunning)
	a.post("/start", strings.Replace(body, "gated", "echo", 1)).failed(t, 409, api.CodeAlreadyRunning)

	close(g.open)
	_, texts, end := s.rest()
	require.Contains(t, texts, " done")
	require.JSONEq(t, `{"type":"end","output":"waiting done","state":{"k":[1,"<&>"]}}`, end.data)
	a.post("/start", body).failed(t, 409, api.CodeAlreadyCompleted)
	a.post("/resume", `{"sessionId":"s"}`).failed(t, 409, api.CodeAlreadyCompleted)
	a.get("/status?sessionId=s").decode(t, &status)
	require.Equal(t, "completed", status.Status)
	require.JSONEq(t, `"waiting done"`, string(status.Output))
	require.Equal(t, 1, status.StepCount)

	var session api.Summary
	a.get("/sessions/s").decode(t, &session)
	require.Equal(t, map[string]string{"a": "b"}, session.Metadata)
}

func TestStartStructured(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	got := a.post("/start", `{"sessionId":"s","agentType":"echo","message":[
		{"role":"user","content":"one","metadata":{"hidden":true},"more":1},
		{"role":"user","content":"","files":[{"data":"data:text/plain;base64,aGk=","mediaType":"text/plain","filename":"f.txt"}]}
	]}`)
	require.Equal(t, 200, got.status, got.body)
	_, texts, _ := a.stream("/sse?sessionId=s").rest()
	require.Contains(t, texts, "hello")
	var at struct{ State projector.Tree }
	a.get("/sessions/s/state").decode(t, &at)
	m := at.State.Messages
	require.Len(t, m, 3)
	require.Equal(t, "one", m[0].Content)
	require.True(t, m[0].Hidden())
	require.Equal(t, []fact.MessageFile{{Data: "data:text/plain;base64,aGk=", MediaType: "text/plain", Filename: "f.txt"}}, m[1].Files)

	got = a.post("/start", `{"sessionId":"bad","agentType":"broken","message":"x"}`)
	require.Equal(t, 200, got.status, got.body)
	_, _, end := a.stream("/sse?sessionId=bad").rest()
	require.Equal(t, sseEvent{name: "error", data: `{"type":"error","error":"bad key","recoverable":false}`}, end)
	var status api.Status
	a.get("/status?sessionId=bad").decode(t, &status)
	require.Equal(t, "failed", status.Status)
	require.Equal(t, "bad key", status.Error)
}

// TestFailureNamesItsCause: of a model whose server is down, the answer, the
// record and the log name the model, the host, the reason and the setting.
func TestFailureNamesItsCause(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.Listener.Addr().String()
	server.Close()
	a := newAPIOn(t, newLog(t), []agentloop.Agent{{Name: "far", MaxRetries: -1, Model: openai.New("gpt-x", &openai.Options{
		APIKey: "sk-hunter2-hunter2", BaseURL: "http://user:hunter2@" + address + "/v1?key=hunter2",
	})}})
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"far","message":"x"}`).status)
	_, _, end := a.stream("/sse?sessionId=s").rest()
	want := "model call to gpt-x failed: dial " + address + ": connection refused (check model.baseURL)"
	require.Contains(t, end.data, want)
	require.Equal(t, want, a.status("s").Error)
	records := a.get("/sessions/s/records").body
	require.Contains(t, records, want)
	require.Regexp(t, `msg="model call failed" .*model=gpt-x .*reason="connection refused" host=`+address+` check=model.baseURL`, a.logs.String())
	for _, text := range []string{end.data, records, a.logs.String()} {
		require.NotContains(t, text, "hunter2")
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), agents(gatedModel{}))
	a.append("s", created("s"), requested("s", "run-1")) // died without a word, as another agent's
	var status api.Status
	a.get("/status?sessionId=s").decode(t, &status)
	require.Equal(t, "running", status.Status)
	require.False(t, status.IsExecuting)
	a.post("/resume", `{"sessionId":"s"}`).failed(t, 404, api.CodeNotFound)
	a.post("/resume", `{"sessionId":"nobody"}`).failed(t, 404, api.CodeNotFound)
	a.append("produced", text("produced", "a"))
	a.post("/resume", `{"sessionId":"produced"}`).failed(t, 400, api.CodeInvalidRequest)

	mine := func(s string) eventlog.Entry {
		return factOf(s, &fact.SessionCreated{AgentType: "echo", Base: factBase(s)})
	}
	a.append("i", mine("i"), requested("i", "run-1"),
		factOf("i", &fact.RunEnded{RunID: "run-1", Status: fact.RunStopped, Base: factBase("i")}))
	body := a.post("/start", `{"sessionId":"i","agentType":"echo","message":"x"}`).failed(t, 409, api.CodeAlreadyRunning)
	require.Equal(t, "use /resume", body.Detail)
	got := a.post("/resume", `{"sessionId":"i","message":[{"role":"user","content":"go on"}]}`)
	require.Equal(t, 200, got.status, got.body)
	var started engine.Started
	got.decode(t, &started)
	require.NotEqual(t, "run-1", started.RunID)
	_, texts, end := a.stream("/sse?sessionId=i").rest()
	require.Contains(t, texts, "run_resumed")
	require.Contains(t, texts, "hello")
	require.Equal(t, "end", end.name)
	require.Contains(t, a.get("/sessions/i/records").body, `"go on"`)
}

// TestStartOutlivesItsClient: what was asked for is done, not half done.
func TestStartOutlivesItsClient(t *testing.T) {
	a := newAPIOn(t, memory.New(), agents(gatedModel{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", "/start",
		strings.NewReader(`{"sessionId":"s","agentType":"echo","message":"x"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Length", fmt.Sprint(req.ContentLength))
	a.srv.ServeHTTP(discard{http.Header{}}, req)
	_, texts, _ := a.stream("/sse?sessionId=s").rest()
	require.Contains(t, texts, "hello")
}

type discard struct{ h http.Header }

func (d discard) Header() http.Header         { return d.h }
func (d discard) Write(p []byte) (int, error) { return len(p), nil }
func (d discard) WriteHeader(int)             {}

func TestStartWhileStopping(t *testing.T) {
	a := newAPIOn(t, memory.New(), agents(gatedModel{}))
	a.loop.Stop()
	a.post("/start", `{"sessionId":"s","agentType":"echo","message":"x"}`).failed(t, 503, api.CodeUnavailable)
}

// TestStartValidates: what is wrong is named, and nothing is done.
func TestStartValidates(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), agents(gatedModel{}))
	member := func(s string) string { return `{"sessionId":"s","agentType":"echo","message":"x",` + s + `}` }
	message := func(s string) string { return `{"sessionId":"s","agentType":"echo","message":` + s + `}` }
	for _, tc := range []struct{ body, field string }{
		{``, ""},
		{`x`, ""},
		{`{"sessionId":"s"`, ""},
		{`{} {}`, ""},
		{`{}x`, ""},
		{`null`, ""},
		{`[]`, ""},
		{`"s"`, ""},
		{"{\"sessionId\":\"s\xff\"}", ""},
		{strings.Repeat(`[`, 20000), ""},
		{`{"sessionId":"s","sessionId":"t","agentType":"echo","message":"x"}`, "sessionId"},
		{member(`"state":{"a":{"b":1,"b":2}}`), "b"},
		{`{"sessionid":"s","agentType":"echo","message":"x"}`, "sessionId"},
		{`{"agentType":"echo","message":"x"}`, "sessionId"},
		{`{"sessionId":1,"agentType":"echo","message":"x"}`, "sessionId"},
		{`{"sessionId":"s","message":"x"}`, "agentType"},
		{`{"sessionId":"s","agentType":"","message":"x"}`, "agentType"},
		{`{"sessionId":"s","agentType":null,"message":"x"}`, "agentType"},
		{`{"sessionId":"s","agentType":["echo"],"message":"x"}`, "agentType"},
		{`{"sessionId":"s","agentType":"echo"}`, "message"},
		{message(`""`), "message"},
		{message(`null`), "message"},
		{message(`{}`), "message"},
		{message(`7`), "message"},
		{message(`[]`), "message"},
		{message(`["x"]`), "message[0]"},
		{message(`[null]`), "message[0]"},
		{message(`[{"content":"x"}]`), "message[0].role"},
		{message(`[{"role":"assistant","content":"x"}]`), "message[0].role"},
		{message(`[{"role":"user"}]`), "message[0].content"},
		{message(`[{"role":"user","content":""}]`), "message[0].content"},
		{message(`[{"role":"user","content":["x"]}]`), "message[0].content"},
		{message(`[{"role":"user","content":"x"},{"role":"user","content":"x","metadata":"y"}]`), "message[1].metadata"},
		{message(`[{"role":"user","content":"x","metadata":null}]`), "message[0].metadata"},
		{message(`[{"role":"user","content":"x","files":{}}]`), "message[0].files"},
		{message(`[{"role":"user","content":"x","files":[1]}]`), "message[0].files[0]"},
		{message(`[{"role":"user","content":"x","files":[{"mediaType":"a/b"}]}]`), "message[0].files[0].data"},
		{message(`[{"role":"user","content":"x","files":[{"data":"https://x","mediaType":"a/b"}]}]`), "message[0].files[0].data"},
		{message(`[{"role":"user","content":"x","files":[{"data":"data:,x"}]}]`), "message[0].files[0].mediaType"},
		{message(`[{"role":"user","content":"x","files":[{"data":"data:,x","mediaType":"a/b","filename":1}]}]`), "message[0].files[0].filename"},
		{member(`"state":null`), "state"},
		{member(`"state":[]`), "state"},
		{member(`"state":"{}"`), "state"},
		{member(`"metadata":[]`), "metadata"},
		{member(`"metadata":{"a":1}`), "metadata.a"},
		{member(`"metadata":{"a":null}`), "metadata.a"},
	} {
		got := a.post("/start", tc.body)
		if tc.body == "" {
			got = raw(t, a, "POST /start HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		}
		body := got.failed(t, 400, api.CodeInvalidRequest)
		if tc.field == "" {
			require.Nil(t, body.Detail, tc.body)
			continue
		}
		require.Equal(t, map[string]any{"field": tc.field}, body.Detail, tc.body)
		require.Contains(t, body.Error, tc.field)
	}
	a.post("/resume", `{"sessionId":"s","message":""}`).failed(t, 400, api.CodeInvalidRequest)
	a.post("/resume", `{"sessionId":"s","message":[]}`).failed(t, 400, api.CodeInvalidRequest)
	a.post("/start", `{"sessionId":"s","agentType":"nobody","message":"x"}`).failed(t, 404, api.CodeNotFound)
	a.get("/status?sessionId=s").failed(t, 404, api.CodeNotFound)
	require.NotContains(t, a.logs.String(), "ERROR")

	require.Equal(t, 200, a.post("/start", " \n"+member(`"state":{}, "State":1`)+"\n").status, "other names are not ours")
}
