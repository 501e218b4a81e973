package agui_test

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
	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(testkit.InMemory(m))
}

type object = map[string]any

const (
	within = time.Minute
	tick   = 5 * time.Millisecond
)

// rig is a server with an agent "brain" and its sub-agent "helper", on a log of its own.
type rig struct {
	t    *testing.T
	log  eventlog.Log
	loop *engine.Loop
	api  *httpapi.Server
	url  string
	slow chan struct{} // what the model waits for when it is told "slow"
}

func newRig(t *testing.T, change ...func(*httpapi.Options)) *rig {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{SyncInterval: time.Second})
	log := jetstreamtest.Open(t, nc, nil)
	g := &rig{t: t, log: log, slow: make(chan struct{})}
	var err error
	g.loop, err = engine.New(log, g.agents(), &engine.Options{RetryDelay: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(g.loop.Stop)
	o := httpapi.Options{
		Log: log, Loop: g.loop, AllowUnauthenticated: true, Protocols: httpapi.Protocols{AGUI: true},
		InterruptObservationDeadline: time.Minute,
	}
	for _, f := range change {
		f(&o)
	}
	g.api, err = httpapi.New(o)
	require.NoError(t, err)
	web := httptest.NewServer(g.api)
	t.Cleanup(func() {
		g.api.Close()
		web.Close()
	})
	g.url = web.URL
	return g
}

type modelFunc = modeltest.Func

func (g *rig) agents() []agentloop.Agent {
	answer := model.Answer{Model: "m-1", StopReason: fact.StopEndTurn, Usage: fact.TokenUsage{Prompt: 10, Completion: 5, Total: 15}}
	asked := &agentloop.Tool{Name: "ask", Description: "Asks the client.", Client: true}
	helper := agentloop.Agent{
		Name: "helper", SystemPrompt: "Help.", OutputSchema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`), Tools: []agentloop.Tool{*asked},
		Model: modelFunc(func(_ context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			last := req.Messages[len(req.Messages)-1]
			done := answer
			done.StopReason = fact.StopToolUse
			if strings.Contains(last.Content, "ask") {
				return done, call(emit, "call_h", "ask", `{"q":"who"}`)
			}
			said := "Helped: " + last.Content
			return done, cmp.Or(emit(model.TextDelta{Text: said}), call(emit, "call_f", agentloop.FinishTool, fmt.Sprintf(`{"answer":%q}`, said)))
		}),
	}
	var once sync.Once
	brain := agentloop.Agent{
		Name: "brain", SystemPrompt: "Think.", MaxRetries: 2, SubAgents: []agentloop.SubAgent{{Agent: "helper"}},
		Tools: []agentloop.Tool{
			{Name: "clock", Description: "The time.", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return "noon", nil }},
			{Name: "broken", Description: "Fails.", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return nil, io.ErrUnexpectedEOF }},
			{Name: "pay", Description: "Pays.", RequireApproval: agentloop.AlwaysApprove, Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return "paid", nil }},
			{Name: "count", Description: "Counts.", Execute: func(_ context.Context, c *agentloop.Call, _ json.RawMessage) (any, error) {
				return "counted", agentloop.UpdateState(c, func(s *map[string]any) error {
					n, _ := (*s)["n"].(float64)
					(*s)["n"] = n + 1
					return nil
				})
			}},
			*asked,
		},
		Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			last := req.Messages[len(req.Messages)-1]
			say := func(text string) error { return emit(model.TextDelta{Text: text}) }
			done := answer
			if last.Role == model.RoleTool {
				return done, say("It is " + last.Content + ".")
			}
			switch word, rest, _ := strings.Cut(last.Content, " "); word {
			case "call":
				done.StopReason = fact.StopToolUse
				name, args, _ := strings.Cut(rest, " ")
				if args == "" {
					args = `{"city":"Lisbon"}`
				}
				return done, cmp.Or(emit(model.ReasoningDelta{Text: "A tool."}), say("Let me see."), call(emit, "call_1", name, args))
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
			default:
				return done, cmp.Or(emit(model.ReasoningDelta{Text: "They greet. "}), emit(model.ReasoningDelta{Text: "I too."}), say("Hello "), say("there."))
			}
		}),
	}
	return []agentloop.Agent{brain, helper}
}

// call makes a call in two pieces.
func call(emit func(model.Event) error, id, name, args string) error {
	half := len(args) / 2
	return cmp.Or(emit(model.ToolCallStart{ID: id, Name: name}), emit(model.ToolCallDelta{Text: args[:half]}), emit(model.ToolCallDelta{Text: args[half:]}), emit(model.ToolCallEnd{}))
}

// frame is an event with its id.
type frame struct {
	id    string
	event object
}

func (f frame) kind() string { return f.event["type"].(string) }

func (g *rig) open(method, path, body string, header ...string) *http.Response {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, bytes.NewReader([]byte(body)))
	require.NoError(g.t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(g.t, err)
	return resp
}

// frames reads a stream to its end.
func frames(t *testing.T, resp *http.Response) (all []frame) {
	t.Helper()
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(resp.Body)
		require.Equal(t, 200, resp.StatusCode, "%s", raw)
	}
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	id := ""
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "id: "); ok {
			id = rest
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			f := frame{id: id}
			require.NoError(t, json.Unmarshal([]byte(data), &f.event))
			all = append(all, f)
			id = ""
		}
	}
	return all
}

// input is a RunAgentInput.
func input(thread, run string, more object) object {
	o := object{"threadId": thread, "runId": run, "protocolVersion": "1.0", "state": object{}, "messages": []any{}, "tools": []any{}, "context": []any{}, "forwardedProps": object{}}
	for k, v := range more {
		o[k] = v
	}
	return o
}

func user(id, text string) object { return object{"id": id, "role": "user", "content": text} }

func (g *rig) post(in object) *http.Response {
	g.t.Helper()
	raw, err := json.Marshal(in)
	require.NoError(g.t, err)
	return g.open("POST", "/ag-ui/brain", string(raw))
}

// run makes a run and reads its stream into a new client.
func (g *rig) run(c *client, in object) []frame {
	g.t.Helper()
	all := frames(g.t, g.post(in))
	c.takeAll(all)
	return all
}

func (g *rig) rejoin(thread, after string) []frame {
	g.t.Helper()
	path := "/ag-ui/brain/" + thread
	if after != "" {
		path += "?after=" + after
	}
	return frames(g.t, g.open("GET", path, ""))
}

// refused makes a request that must fail, and returns its error.
func (g *rig) refused(status int, in object) string {
	g.t.Helper()
	resp := g.post(in)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(g.t, err)
	require.Equal(g.t, status, resp.StatusCode, "%s", raw)
	var o object
	require.NoError(g.t, json.Unmarshal(raw, &o))
	require.Equal(g.t, "RUN_ERROR", o["type"])
	return o["message"].(string)
}

func kinds(all []frame) (kinds []string) {
	for _, f := range all {
		kinds = append(kinds, f.kind())
	}
	return kinds
}
