package engine_test

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// tracedRig is a rig whose spans are kept.
type tracedRig struct {
	*rig
	spans *tracetest.InMemoryExporter
}

func newTracedRig(t *testing.T, log eventlog.Log, content bool, agents ...agentloop.Agent) *tracedRig {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(engine.TraceIDs{}))
	loop, err := engine.New(log, agents, &engine.Options{
		RetryDelay: time.Millisecond, Tracer: provider.Tracer("test"), TraceContent: content,
	})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return &tracedRig{rig: &rig{t: t, log: log, loop: loop}, spans: spans}
}

// rest stops the loop and returns its spans by name, in the order of their
// beginning. All are of the session's trace.
func (g *tracedRig) rest(session string) map[string]tracetest.SpanStubs {
	g.t.Helper()
	g.loop.Stop()
	spans := g.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	named := map[string]tracetest.SpanStubs{}
	sum := sha256.Sum256([]byte(session))
	for _, s := range spans {
		require.Equal(g.t, sum[:16], idOf(s), s.Name)
		require.Equal(g.t, session, attr(s, "gen_ai.conversation.id"))
		require.Equal(g.t, session, attr(s, "session.id"))
		named[s.Name] = append(named[s.Name], s)
	}
	return named
}

func idOf(s tracetest.SpanStub) []byte {
	id := s.SpanContext.TraceID()
	return id[:]
}

// attr is a span's attribute, or nil.
func attr(s tracetest.SpanStub, key attribute.Key) any { return valueOf(s.Attributes, key) }

func valueOf(attrs []attribute.KeyValue, key attribute.Key) any {
	for _, a := range attrs {
		if a.Key == key {
			return a.Value.AsInterface()
		}
	}
	return nil
}

// events are the names of a span's events with their reasons.
func events(s tracetest.SpanStub) (told []string) {
	for _, e := range s.Events {
		text := e.Name
		if reason, ok := valueOf(e.Attributes, "helix.reason").(string); ok {
			text += " " + reason
		}
		told = append(told, text)
	}
	return told
}

func below(t *testing.T, child, parent tracetest.SpanStub) {
	t.Helper()
	require.Equal(t, parent.SpanContext.SpanID(), child.Parent.SpanID(), "%s is not below %s", child.Name, parent.Name)
}

// usingTokens is a turn that has used tokens.
func usingTokens(turn scripted.Turn) scripted.Turn {
	turn.Usage = fact.TokenUsage{Prompt: 7, Completion: 5, Cached: 3, Total: 12}
	return turn
}

func TestTraceOfARun(t *testing.T) {
	g := newTracedRig(t, memory.New(), false, agentloop.Agent{
		Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(usingTokens(toolStep("add", "c", `{"by":2}`)), usingTokens(done)),
	})
	started := g.start("s", "a", "a secret")
	g.ended("s")
	spans := g.rest("s")
	require.Len(t, spans, 3)

	run := spans["invoke_agent a"]
	require.Len(t, run, 1)
	require.False(t, run[0].Parent.IsValid())
	require.Equal(t, "invoke_agent", attr(run[0], "gen_ai.operation.name"))
	require.Equal(t, "a", attr(run[0], "gen_ai.agent.name"))
	require.Equal(t, started.RunID, attr(run[0], "helix.run.id"))
	require.Equal(t, int64(1), attr(run[0], "helix.attempt"))
	require.NotEmpty(t, attr(run[0], "helix.node"))
	require.Equal(t, "completed", attr(run[0], "helix.run.status"))
	require.Equal(t, codes.Unset, run[0].Status.Code)
	require.Empty(t, run[0].Events)

	chats := spans["chat scripted"]
	require.Len(t, chats, 2)
	for i, finish := range []string{"tool-calls", "stop"} {
		below(t, chats[i], run[0])
		require.Equal(t, trace.SpanKindClient, chats[i].SpanKind)
		require.Equal(t, "chat", attr(chats[i], "gen_ai.operation.name"))
		require.Equal(t, "scripted", attr(chats[i], "gen_ai.provider.name"))
		require.Equal(t, "scripted", attr(chats[i], "gen_ai.request.model"))
		require.Equal(t, "scripted", attr(chats[i], "gen_ai.response.model"))
		require.Equal(t, []string{finish}, attr(chats[i], "gen_ai.response.finish_reasons"))
		require.Equal(t, int64(7), attr(chats[i], "gen_ai.usage.input_tokens"))
		require.Equal(t, int64(5), attr(chats[i], "gen_ai.usage.output_tokens"))
		require.Equal(t, int64(3), attr(chats[i], "gen_ai.usage.cache_read.input_tokens"))
		require.Nil(t, attr(chats[i], "gen_ai.usage.reasoning.output_tokens"))
	}

	tools := spans["execute_tool add"]
	require.Len(t, tools, 1)
	below(t, tools[0], run[0])
	require.Equal(t, "execute_tool", attr(tools[0], "gen_ai.operation.name"))
	require.Equal(t, "add", attr(tools[0], "gen_ai.tool.name"))
	require.Equal(t, "c", attr(tools[0], "gen_ai.tool.call.id"))
	require.Nil(t, attr(tools[0], "error.type"))

	for _, all := range spans { // nobody has asked for content
		for _, s := range all {
			for _, key := range contentKeys {
				require.Nil(t, attr(s, key))
			}
		}
	}
}

var contentKeys = []attribute.Key{
	"gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result",
}

func TestTraceOfAnApproval(t *testing.T) {
	for approved, code := range map[bool]any{true: nil, false: "approval_denied"} {
		log := memory.New()
		agent := func() agentloop.Agent {
			a := approval(newTold())
			a.Hooks = nil
			return a
		}
		first := newTracedRig(t, log, false, agent())
		began := first.start("s", "a", "go")
		require.Eventually(t, func() bool { return stateOf(t, log, "s").Suspended() }, time.Minute, time.Millisecond)
		released(t, first.loop)
		spans := first.rest("s")
		run := spans["invoke_agent a"]
		require.Len(t, run, 1)
		require.Equal(t, []string{"suspended client_tool"}, events(run[0]))
		require.Equal(t, []string{"c"}, valueOf(run[0].Events[0].Attributes, "helix.calls"))
		require.Equal(t, "suspended_client_tool", attr(run[0], "helix.run.status"))
		require.Equal(t, []string{"suspended approval"}, events(spans["execute_tool add"][0]))

		second := newTracedRig(t, log, false, agent())
		_, err := second.loop.Submit(t.Context(), engine.Submission{
			SessionID: "s", ToolCallID: "c", Kind: fact.SubmitApproval, Approved: approved,
		})
		require.NoError(t, err)
		_, err = second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
		second.ended("s")
		spans = second.rest("s")
		run = spans["invoke_agent a"]
		require.Len(t, run, 1)
		require.Equal(t, []string{"resumed client_tool"}, events(run[0]))
		require.NotEqual(t, began.RunID, attr(run[0], "helix.run.id"))
		tool := spans["execute_tool add"]
		require.Len(t, tool, 1)
		below(t, tool[0], run[0])
		require.Equal(t, []string{"resumed approval"}, events(tool[0]))
		require.Equal(t, code, attr(tool[0], "error.type"))
	}
}

func TestTraceOfASubAgent(t *testing.T) {
	g := newTracedRig(t, memory.New(), false, bossAndHelper(nil, nil, script(toolStep("__finish__", "f", `{"x":1}`)))...)
	g.start("s", "boss", "go")
	g.ended("s")
	spans := g.rest("s")
	require.Len(t, spans["invoke_agent boss"], 1)
	require.Len(t, spans["execute_tool subagent__helper"], 1)
	require.Len(t, spans["invoke_agent helper"], 1)
	require.Len(t, spans["chat scripted"], 3)
	boss, call, helper := spans["invoke_agent boss"][0], spans["execute_tool subagent__helper"][0], spans["invoke_agent helper"][0]
	below(t, call, boss)
	below(t, helper, call)
	below(t, spans["execute_tool __finish__"][0], helper)
	require.Equal(t, "s-sub-c", attr(helper, "helix.session.id"))
	require.False(t, call.EndTime.Before(helper.EndTime), "the call lasts until its sub-agent is done")
}

func TestTraceOfAFailedModel(t *testing.T) {
	refused := &model.Error{Code: model.CodeRateLimited, Message: "not you, sk-123", Retryable: true}
	g := newTracedRig(t, memory.New(), false, agentloop.Agent{
		Name: "a", MaxRetries: 1, Model: scripted.New([]scripted.Turn{{Err: refused}}, nil),
	})
	g.start("s", "a", "go")
	g.ended("s")
	spans := g.rest("s")
	chats := spans["chat scripted"]
	require.Len(t, chats, 2)
	for i, s := range append(chats, spans["invoke_agent a"]...) {
		require.Equal(t, model.CodeRateLimited, attr(s, "error.type"))
		require.Equal(t, sdktrace.Status{Code: codes.Error, Description: model.CodeRateLimited}, s.Status)
		if i < len(chats) {
			require.Equal(t, int64(i+1), attr(s, "helix.attempt"))
		}
	}
}

func TestTraceOfATakeover(t *testing.T) {
	log := memory.New()
	hangs, may := make(chan struct{}, 1), make(chan struct{})
	first := newTracedRig(t, log, false, agentloop.Agent{Name: "a", Model: stuck(hangs)})
	began := first.start("s", "a", "go")
	<-hangs
	spans := first.rest("s")
	left := spans["invoke_agent a"]
	require.Len(t, left, 1)
	require.Equal(t, []string{"released stopping"}, events(left[0]))
	require.Len(t, spans["chat"], 1, "a model without a name")
	require.Equal(t, []string{"released stopping"}, events(spans["chat"][0]))

	second := newTracedRig(t, log, false, agentloop.Agent{Name: "a", Model: saysWhen("Done.", may)})
	require.Equal(t, began, second.start("s", "a", "go"), "the run continues")
	close(may)
	second.ended("s")
	run := second.rest("s")["invoke_agent a"]
	require.Len(t, run, 1)
	require.Equal(t, began.RunID, attr(left[0], "helix.run.id"))
	require.Equal(t, began.RunID, attr(run[0], "helix.run.id"))
	require.Equal(t, int64(1), attr(left[0], "helix.attempt"))
	require.Equal(t, int64(2), attr(run[0], "helix.attempt"))
	require.NotEqual(t, attr(left[0], "helix.node"), attr(run[0], "helix.node"))
	require.Equal(t, []string{"resumed takeover"}, events(run[0]))
}

func TestTraceOfTheLoserOfATakeover(t *testing.T) {
	log := memory.New()
	hangs, may := make(chan struct{}, 1), make(chan struct{})
	first := newTracedRig(t, log, false, agentloop.Agent{Name: "a", Model: stuck(hangs)})
	second := newTracedRig(t, log, false, agentloop.Agent{Name: "a", Model: saysWhen("Done.", may)})
	first.start("s", "a", "go")
	<-hangs
	_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
	require.NoError(t, err)
	released(t, first.loop)
	close(may)
	second.ended("s")
	lost := first.rest("s")["invoke_agent a"] // it may have seen the further run, too
	require.Contains(t, events(lost[len(lost)-1]), "released superseded")
	run := second.rest("s")["invoke_agent a"]
	require.Len(t, run, 1)
	require.Equal(t, []string{"resumed interrupted"}, events(run[0]))
	require.Equal(t, "completed", attr(run[0], "helix.run.status"))
}

func TestTraceLinksToItsCaller(t *testing.T) {
	log := memory.New()
	hangs, may := make(chan struct{}, 1), make(chan struct{})
	first := newTracedRig(t, log, false, agentloop.Agent{Name: "a", Model: stuck(hangs)})
	caller := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true,
	})
	_, err := first.loop.Start(trace.ContextWithRemoteSpanContext(t.Context(), caller), engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	<-hangs
	links := func(spans map[string]tracetest.SpanStubs) {
		t.Helper()
		run := spans["invoke_agent a"]
		require.Len(t, run, 1)
		require.False(t, run[0].Parent.IsValid())
		require.Len(t, run[0].Links, 1)
		require.Equal(t, caller, run[0].Links[0].SpanContext)
	}
	links(first.rest("s"))
	second := newTracedRig(t, log, false, agentloop.Agent{Name: "a", Model: saysWhen("Done.", may)})
	second.start("s", "a", "go")
	close(may)
	second.ended("s")
	links(second.rest("s")) // it is in the log
}

func TestTraceWithContent(t *testing.T) {
	long := make([]byte, 100<<10)
	for i := range long {
		long[i] = 'x'
	}
	g := newTracedRig(t, memory.New(), true, agentloop.Agent{
		Name: "a", SystemPrompt: "Be brief.", Tools: []agentloop.Tool{addTool()},
		Model: script(toolStep("add", "c", `{"by":2}`), scripted.Turn{Text: "Two."}),
	})
	g.start("s", "a", "add é"+string(long))
	g.ended("s")
	spans := g.rest("s")
	chats, run, tool := spans["chat scripted"], spans["invoke_agent a"][0], spans["execute_tool add"][0]
	require.Contains(t, attr(chats[0], "gen_ai.system_instructions"), "Be brief.")
	require.JSONEq(t, `{"by":2}`, attr(tool, "gen_ai.tool.call.arguments").(string))
	require.Equal(t, "2", attr(tool, "gen_ai.tool.call.result"))
	require.JSONEq(t, `[{"role":"assistant","parts":[{"type":"text","content":"Two."}],"finish_reason":"stop"}]`,
		attr(chats[1], "gen_ai.output.messages").(string))
	require.Contains(t, attr(run, "gen_ai.output.messages"), "Two.")
	for _, s := range append(chats, run) {
		var input []struct {
			Role  string
			Parts []struct{ Type, Content, Response string }
		}
		require.NoError(t, json.Unmarshal([]byte(attr(s, "gen_ai.input.messages").(string)), &input))
		require.Equal(t, "user", input[0].Role)
		require.Contains(t, input[0].Parts[0].Content, "add é")
		require.LessOrEqual(t, len(input[0].Parts[0].Content), 8<<10)
	}
}

// Spans are no condition of anything: without a tracer runs are the same.
func TestNoTracer(t *testing.T) {
	g := newRig(t, bossAndHelper(nil, nil, script(toolStep("__finish__", "f", `{"x":1}`)))...)
	g.start("s", "boss", "go")
	require.Equal(t, projector.SessionCompleted, g.ended("s").Status)
}

func TestTraceIDs(t *testing.T) {
	require.Equal(t, "043a718774c572bd8a25adbeb1bfcd5c", engine.TraceID("s").String(), "the first half of what sha256sum says")
	require.NotEqual(t, engine.TraceID("s"), engine.TraceID("t"))
	a, span := engine.TraceIDs{}.NewIDs(t.Context())
	b, _ := engine.TraceIDs{}.NewIDs(t.Context())
	require.NotEqual(t, a, b, "spans without a session are in separate traces")
	require.True(t, span.IsValid())
}
