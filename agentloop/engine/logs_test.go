package engine_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
)

// collector is a log handler that keeps events of some names.
type collector struct {
	mu     sync.Mutex
	events []map[string]string
}

func (c *collector) Enabled(context.Context, slog.Level) bool { return true }
func (c *collector) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *collector) WithGroup(string) slog.Handler            { return c }

func (c *collector) Handle(_ context.Context, r slog.Record) error {
	event := map[string]string{"event": r.Message}
	r.Attrs(func(a slog.Attr) bool {
		event[a.Key] = a.Value.String()
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
	return nil
}

// named returns the attributes of the events of a name.
func (c *collector) named(name string) []map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []map[string]string
	for _, e := range c.events {
		if e["event"] == name {
			out = append(out, e)
		}
	}
	return out
}

const secret = "what nobody may read in a log"

// asking is a loop whose agent asks a client, on a log.
func asking(t *testing.T, log eventlog.Log, clock *clock) (*engine.Loop, *collector) {
	t.Helper()
	c := &collector{}
	loop, err := engine.New(log, []agentloop.Agent{{
		Name: "a", Model: script(toolStep("ask", "c", `{"q":"`+secret+`"}`), done),
		Tools: []agentloop.Tool{{Name: "ask", Client: true, Timeout: time.Minute, OutputSchema: json.RawMessage(`{"type":"string"}`)}},
	}}, &engine.Options{Logger: slog.New(c), Now: clock.time})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	return loop, c
}

// suspendedCall starts a run that waits for the client.
func suspendedCall(t *testing.T, loop *engine.Loop) *engine.Handle {
	t.Helper()
	h, err := loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	released(t, loop) // all is logged
	return h
}

func answerOf(raw string) engine.Submission {
	return engine.Submission{SessionID: "s", ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage(raw)}
}

// of is an event of the call.
func of(h *engine.Handle, event string, more ...string) map[string]string {
	e := map[string]string{"event": event, "session": "s", "run": h.RunID, "call": "c", "tool": "ask"}
	for i := 0; i < len(more); i += 2 {
		e[more[i]] = more[i+1]
	}
	return e
}

func TestLogEventsOfAClientTool(t *testing.T) {
	ctx := t.Context()
	one := func(e map[string]string) []map[string]string { return []map[string]string{e} }
	t.Run("answered", func(t *testing.T) {
		loop, c := asking(t, memory.New(), newClock())
		h := suspendedCall(t, loop)
		_, err := loop.Submit(ctx, answerOf(`5`))
		require.Error(t, err)
		_, err = loop.Submit(ctx, answerOf(`"`+secret+`"`))
		require.NoError(t, err)
		require.Equal(t, one(of(h, "client_tool.suspended")), c.named("client_tool.suspended"))
		require.Equal(t, one(of(h, "client_tool.validation_failed")), c.named("client_tool.validation_failed"))
		require.Equal(t, one(of(h, "client_tool.submitted", "status", "accepted")), c.named("client_tool.submitted"))
		for _, e := range c.events {
			for k, v := range e {
				require.NotContains(t, v, secret, k)
			}
		}
	})
	t.Run("too late", func(t *testing.T) {
		clock := newClock()
		loop, c := asking(t, memory.New(), clock)
		h := suspendedCall(t, loop)
		clock.add(time.Hour)
		_, err := loop.Submit(ctx, answerOf(`"x"`))
		require.NoError(t, err)
		h2, err := h.Resume(ctx, engine.ResumeRequest{})
		require.NoError(t, err)
		_, err = h2.Result(ctx)
		require.NoError(t, err)
		require.Equal(t, one(of(h, "client_tool.timeout")), c.named("client_tool.timeout"), "it is logged once")
	})
	t.Run("nobody said a word", func(t *testing.T) {
		clock := newClock()
		loop, c := asking(t, memory.New(), clock)
		h := suspendedCall(t, loop)
		clock.add(time.Hour)
		h2, err := h.Resume(ctx, engine.ResumeRequest{})
		require.NoError(t, err)
		_, err = h2.Result(ctx)
		require.NoError(t, err)
		require.Equal(t, one(of(h, "client_tool.timeout")), c.named("client_tool.timeout"))
	})
	t.Run("aborted", func(t *testing.T) {
		log := memory.New()
		loop, c := asking(t, log, newClock())
		h := suspendedCall(t, loop)
		require.NoError(t, h.Abort(ctx, "enough"))
		(&rig{t: t, log: log, loop: loop}).ended("s")
		loop.Stop() // what was under way is finished
		require.Equal(t, one(of(h, "client_tool.aborted", "code", "aborted")), c.named("client_tool.aborted"))
	})
	t.Run("another writer comes in between", func(t *testing.T) {
		log := &intruded{Log: memory.New()}
		loop, _ := asking(t, log, newClock())
		h := suspendedCall(t, loop)
		loop.Stop()
		again, c := asking(t, log, newClock())
		log.arm()
		_, err := again.Submit(ctx, answerOf(`"x"`))
		require.NoError(t, err)
		require.Equal(t, one(of(h, "client_tool.ownership_retry", "attempt", "2")), c.named("client_tool.ownership_retry"))
	})
}

// intruded is a log into which somebody else writes before the next append.
type intruded struct {
	eventlog.Log
	mu    sync.Mutex
	armed bool
}

func (l *intruded) arm() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = true
}

func (l *intruded) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	l.mu.Lock()
	armed := l.armed
	l.armed = false
	l.mu.Unlock()
	if armed {
		e, err := eventlog.NewChunk(&eventlog.CustomEvent{EventName: "x", Data: json.RawMessage(`1`), Base: eventlog.Base{
			AgentID: session, AgentType: "a", Timestamp: 1,
		}}, eventlog.Labels{})
		if err != nil {
			return 0, err
		}
		if _, err := l.Log.Append(ctx, session, expected, []eventlog.Entry{e}); err != nil {
			return 0, err
		}
	}
	return l.Log.Append(ctx, session, expected, entries)
}

func TestLogEventOfASubAgentThatCantBeStarted(t *testing.T) {
	c := &collector{}
	loop, err := engine.New(memory.New(), []agentloop.Agent{{
		Name: "deep", OutputSchema: json.RawMessage(`{"type":"object"}`), SubAgents: []agentloop.SubAgent{{Agent: "deep"}},
		Model: script(toolStep("subagent__deep", "c", `{"message":"on"}`), toolStep("__finish__", "f", `{}`)),
	}}, &engine.Options{Logger: slog.New(c)})
	require.NoError(t, err)
	t.Cleanup(loop.Stop)
	h, err := loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "deep", Messages: []agentloop.Input{{Content: "go"}},
	})
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
	events := c.named("subagent.dispatch_failed")
	require.Len(t, events, 1)
	require.Equal(t, agentloop.CodeMaxDepth, events[0]["code"])
	require.Equal(t, "subagent__deep", events[0]["tool"])
	require.NotEmpty(t, events[0]["run"])
}
