package responses_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/responses"
	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testkit.InMemory(m))
}

const within = time.Minute

// rig is a server with an agent "brain", a "form" that gives structured output, and a "parent" with a child
// for which it does not wait, on a log of its own.
type rig struct {
	t    *testing.T
	log  eventlog.Log
	loop *engine.Loop
	api  *httpapi.Server
	url  string
	// slow is what the model waits for when it is told "slow".
	slow chan struct{}
}

func newRig(t *testing.T, change ...func(*httpapi.Options)) *rig {
	t.Helper()
	return newRigOn(t, func(log eventlog.Log) eventlog.Log { return log }, change...)
}

// newRigOn is newRig with a log that wrap returns. The rig's own is as it is.
func newRigOn(t *testing.T, wrap func(eventlog.Log) eventlog.Log, change ...func(*httpapi.Options)) *rig {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	g := &rig{t: t, log: jetstreamtest.Open(t, nc, nil), slow: make(chan struct{})}
	log := wrap(g.log)
	form := g.brain("form")
	form.OutputSchema = json.RawMessage(`{"type":"object","required":["city"]}`)
	parent := g.brain("parent")
	parent.PersistentAgents = []agentloop.PersistentAgent{{Agent: "brain", Mode: agentloop.NonBlocking}}
	var err error
	g.loop, err = engine.New(log, []agentloop.Agent{g.brain("brain"), g.brain("other"), form, parent}, &engine.Options{RetryDelay: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(g.loop.Stop)
	o := httpapi.Options{
		Log: log, Loop: g.loop, AllowUnauthenticated: true, Protocols: httpapi.Protocols{Responses: &responses.Options{}},
		InterruptObservationDeadline: within,
	}
	for _, f := range change {
		f(&o)
	}
	api, err := httpapi.New(o)
	require.NoError(t, err)
	web := httptest.NewServer(api)
	t.Cleanup(func() {
		api.Close()
		web.Close()
	})
	g.api, g.url = api, web.URL
	return g
}

type modelFunc = modeltest.Func

// brain does what the last message says.
func (g *rig) brain(name string) agentloop.Agent {
	var once sync.Once
	return agentloop.Agent{
		Name: name, SystemPrompt: "Think.",
		Tools: []agentloop.Tool{
			{Name: "clock", Description: "The time.", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return "noon", nil }},
			{Name: "broken", Description: "Fails.", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return nil, io.ErrUnexpectedEOF }},
			{Name: "pay", Description: "Pays.", RequireApproval: agentloop.AlwaysApprove, Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return "paid", nil }},
			{Name: "ask", Description: "Asks the client.", Client: true},
		},
		Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			last := req.Messages[len(req.Messages)-1]
			say := func(text string) error { return emit(model.TextDelta{Text: text}) }
			done := model.Answer{Model: "m-1", StopReason: fact.StopEndTurn, Usage: fact.TokenUsage{Prompt: 10, Completion: 5, Reasoning: 2, Cached: 4, CacheWrite: 3, Total: 15}}
			if last.Role == model.RoleTool {
				return done, say("It is " + last.Content + ".")
			}
			switch word, rest, _ := strings.Cut(last.Content, " "); word {
			case "call":
				done.StopReason = fact.StopToolUse
				return done, cmp.Or(emit(model.ReasoningDelta{Text: "A tool."}), emit(model.ToolCallStart{ID: "call_1", Name: rest}),
					emit(model.ToolCallDelta{Text: `{"city":`}), emit(model.ToolCallDelta{Text: `"Lisbon"}`}), emit(model.ToolCallEnd{}))
			case "spawn":
				done.StopReason = fact.StopToolUse
				return done, cmp.Or(emit(model.ToolCallStart{ID: "call_1", Name: agentloop.CompanionPrefix + "spawnAgent"}),
					emit(model.ToolCallDelta{Text: `{"agent":"brain","name":"kid","initialMessage":"` + rest + `"}`}), emit(model.ToolCallEnd{}))
			case "flaky":
				var err error
				once.Do(func() {
					err = cmp.Or[error](emit(model.ReasoningDelta{Text: "Hm"}), say("Hal"), &model.Error{Code: model.CodeOverloaded, Message: "busy", Retryable: true})
				})
				if err != nil {
					return model.Answer{}, err
				}
				return done, say("Whole.")
			case "fail":
				return model.Answer{}, cmp.Or[error](say("Before."), &model.Error{Code: model.CodeInvalidRequest, Message: "no such thing"})
			case "long":
				done.StopReason = fact.StopMaxTokens
				return done, say("And so")
			case "slow":
				if err := say("one "); err != nil {
					return model.Answer{}, err
				}
				select {
				case <-g.slow:
				case <-ctx.Done():
					return model.Answer{}, context.Cause(ctx)
				}
				return done, say("two")
			case "context":
				return done, say(fmt.Sprintf("%q with %d messages and %d tools", req.System, len(req.Messages), len(req.Tools)))
			case "cite":
				return done, cmp.Or(say("See "), emit(model.Source{URL: "https://a.example", Title: "A"}), say("there."))
			default:
				return done, cmp.Or(emit(model.ReasoningDelta{Text: "They greet. "}), emit(model.ReasoningDelta{Text: "I too."}), say("Hello "), say("there."))
			}
		}),
	}
}

type object = map[string]any

// send makes a request and returns its status and body.
func (g *rig) send(method, path string, body any) (int, object) {
	g.t.Helper()
	status, raw := g.raw(method, path, body)
	var o object
	require.NoError(g.t, json.Unmarshal(raw, &o), "%s", raw)
	return status, o
}

func (g *rig) raw(method, path string, body any) (int, []byte) {
	g.t.Helper()
	answer := g.open(method, path, body)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(g.t, err)
	return answer.StatusCode, raw
}

func (g *rig) open(method, path string, body any) *http.Response {
	g.t.Helper()
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		require.NoError(g.t, err)
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+"/v1"+path, in)
	require.NoError(g.t, err)
	answer, err := http.DefaultClient.Do(req)
	require.NoError(g.t, err)
	return answer
}

// create makes a response, which must succeed.
func (g *rig) create(body object) object {
	g.t.Helper()
	if body["model"] == nil {
		body["model"] = "brain"
	}
	status, o := g.send("POST", "/responses", body)
	require.Equal(g.t, 200, status, "%v", o)
	return o
}

func (g *rig) get(path string) object {
	g.t.Helper()
	status, o := g.send("GET", path, nil)
	require.Equal(g.t, 200, status, "%v", o)
	return o
}

// refused makes a request that must fail, and returns its error.
func (g *rig) refused(status int, method, path string, body any) object {
	g.t.Helper()
	got, o := g.send(method, path, body)
	require.Equal(g.t, status, got, "%v", o)
	detail, _ := o["error"].(object)
	require.Len(g.t, detail, 4, "%v", o)
	return detail
}

// events reads a stream to its end, and checks its frames and its order.
func (g *rig) events(method, path string, body any) []object {
	g.t.Helper()
	return g.eventsOf(g.open(method, path, body))
}

func (g *rig) eventsOf(answer *http.Response) []object {
	g.t.Helper()
	defer answer.Body.Close()
	require.Equal(g.t, 200, answer.StatusCode)
	require.Equal(g.t, "text/event-stream", answer.Header.Get("Content-Type"))
	var all []object
	name := ""
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "event: "); ok {
			name = rest
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e object
		require.NoError(g.t, json.Unmarshal([]byte(data), &e))
		require.Equal(g.t, name, e["type"])
		all = append(all, e)
	}
	return all
}

func typesOf(events []object) (types []string) {
	for _, e := range events {
		types = append(types, strings.TrimPrefix(e["type"].(string), "response."))
	}
	return types
}

// outputs are the types of a response's items.
func outputs(o object) (types []string) {
	for _, it := range o["output"].([]any) {
		types = append(types, it.(object)["type"].(string))
	}
	return types
}

// textOf is the text of a response.
func textOf(o object) (text string) {
	for _, it := range o["output"].([]any) {
		for _, part := range asList(it.(object)["content"]) {
			text += part.(object)["text"].(string)
		}
	}
	return text
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func itemOf(o object, kind string) object {
	for _, it := range o["output"].([]any) {
		if it.(object)["type"] == kind {
			return it.(object)
		}
	}
	return nil
}

// sessionOf is the session of a response.
func sessionOf(o object) string {
	id := strings.TrimPrefix(o["id"].(string), "resp_")
	return id[:strings.LastIndex(id, "_")]
}
