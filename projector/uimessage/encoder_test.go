package uimessage_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
	"github.com/helixd/helixd/projector/uimessage/uitest"
)

func call(id, name, args string) scripted.Call {
	return scripted.Call{ID: id, Name: name, Arguments: json.RawMessage(args)}
}

// conversation is a log that agents have really written.
type conversation struct {
	name   string
	agents []agentloop.Agent
	// then is what a person does when the run waits.
	then func(t *testing.T, l *engine.Loop)
}

func emitting(name string) agentloop.Tool {
	return agentloop.Tool{Name: name, Execute: func(ctx context.Context, c *agentloop.Call, args json.RawMessage) (any, error) {
		for _, data := range []string{`{"n":1,"id":"p"}`, `{"n":2,"id":"p"}`, `{"n":3,"transient":true}`, `{"n":4}`, `5`} {
			if err := c.Emit(ctx, "progress", json.RawMessage(data)); err != nil {
				return nil, err
			}
		}
		for _, data := range []string{`{"id":"x"}`, `{"id":"x"}`, `{"transient":true}`} {
			if err := c.Emit(ctx, "My Event", json.RawMessage(data)); err != nil {
				return nil, err
			}
		}
		return args, nil
	}}
}

func failing(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
	return nil, errors.New("it broke")
}

func conversations() []conversation {
	echo := agentloop.Tool{Name: "echo", Execute: func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) {
		return args, nil
	}}
	deploy := echo
	deploy.Name, deploy.RequireApproval = "deploy", agentloop.AlwaysApprove
	ask := agentloop.Tool{Name: "ask", Client: true}
	submit := func(t *testing.T, l *engine.Loop, s engine.Submission) {
		s.SessionID = "s"
		_, err := l.Submit(t.Context(), s)
		require.NoError(t, err)
	}
	resume := func(t *testing.T, l *engine.Loop) {
		_, err := l.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
		settle(t, l)
	}
	decide := func(id string, yes bool) func(t *testing.T, l *engine.Loop) {
		return func(t *testing.T, l *engine.Loop) {
			submit(t, l, engine.Submission{ToolCallID: id, Kind: fact.SubmitApproval, Approved: yes, Reason: "so be it"})
			resume(t, l)
		}
	}
	helper := agentloop.Agent{
		Name: "helper", Tools: []agentloop.Tool{ask, deploy, echo}, OutputSchema: json.RawMessage(`{"type":"object"}`),
		Model: scripted.New([]scripted.Turn{
			{Text: "I echo.", ToolCalls: []scripted.Call{call("e", "echo", `{}`)}},
			{ToolCalls: []scripted.Call{call("h", "ask", `{"q":1}`), call("i", "deploy", `{"to":"x"}`)}},
			{ToolCalls: []scripted.Call{call("f", agentloop.FinishTool, `{"ok":true}`)}},
		}, nil),
	}
	agent := func(turns []scripted.Turn, tools ...agentloop.Tool) []agentloop.Agent {
		return []agentloop.Agent{{Name: "a", Model: scripted.New(turns, nil), Tools: tools}}
	}
	return []conversation{
		{name: "text", agents: agent([]scripted.Turn{{Reasoning: "Let me think about this.", Text: "Hello there, how are you?"}})},
		{name: "tools", agents: agent([]scripted.Turn{
			{Text: "I look.", ToolCalls: []scripted.Call{
				call("x", "progress", `{"a":"<b>"}`), call("y", "echo", `{"a":1}`), call("z", "broken", `{}`), call("u", "nobody", `{}`),
			}},
			{Text: "Seen."},
		}, emitting("progress"), echo, agentloop.Tool{Name: "broken", Execute: failing})},
		{name: "approval", agents: agent([]scripted.Turn{
			{Text: "May I?", ToolCalls: []scripted.Call{call("a", "deploy", `{"to":"prod"}`), call("b", "echo", `{}`)}}, {Text: "Done."},
		}, deploy, echo), then: decide("a", true)},
		{name: "denial", agents: agent([]scripted.Turn{
			{ToolCalls: []scripted.Call{call("a", "deploy", `{"to":"prod"}`)}}, {Text: "Then not."},
		}, deploy), then: decide("a", false)},
		{name: "client tool", agents: agent([]scripted.Turn{
			{Text: "Where?", ToolCalls: []scripted.Call{call("a", "ask", `{"q":1}`), call("b", "ask", `{"q":2}`)}}, {Text: "I see."},
		}, ask), then: func(t *testing.T, l *engine.Loop) {
			submit(t, l, engine.Submission{ToolCallID: "a", Kind: fact.SubmitClientResult, Result: json.RawMessage(`{"lat":1}`)})
			resume(t, l)
			submit(t, l, engine.Submission{ToolCallID: "b", Kind: fact.SubmitClientResult, Error: "no permission"})
			resume(t, l)
		}},
		{name: "sub-agent", agents: append([]agentloop.Agent{{
			Name: "a", SubAgents: []agentloop.SubAgent{{Agent: "helper"}},
			Model: scripted.New([]scripted.Turn{
				{Text: "I ask.", ToolCalls: []scripted.Call{call("t", "subagent__helper", `{"message":"go"}`)}}, {Text: "All done."},
			}, nil),
		}}, helper), then: func(t *testing.T, l *engine.Loop) {
			submit(t, l, engine.Submission{ToolCallID: "h", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`)})
			decide("i", false)(t, l)
		}},
		{name: "error", agents: []agentloop.Agent{{
			Name: "a", MaxRetries: -1, Model: scripted.New([]scripted.Turn{{Text: "I fall", Err: &model.Error{Code: "provider_auth_failed", Message: "no"}}}, nil),
		}}},
		{name: "output", agents: []agentloop.Agent{{
			Name: "a", OutputSchema: json.RawMessage(`{"type":"object"}`), Model: scripted.New([]scripted.Turn{
				{ToolCalls: []scripted.Call{call("f", agentloop.FinishTool, `{"n":12345678901234567890}`)}},
			}, nil),
		}}},
		{name: "abort", agents: agent([]scripted.Turn{{ToolCalls: []scripted.Call{call("a", "ask", `{}`)}}}, ask),
			then: func(t *testing.T, l *engine.Loop) { require.NoError(t, l.Abort(t.Context(), "s", "enough")) }},
		{name: "interrupt", agents: agent([]scripted.Turn{
			{Text: "One.", ToolCalls: []scripted.Call{call("a", "ask", `{}`)}}, {Text: "Two."},
		}, ask), then: func(t *testing.T, l *engine.Loop) {
			require.NoError(t, l.Interrupt(t.Context(), "s", "coffee"))
			submit(t, l, engine.Submission{ToolCallID: "a", Kind: fact.SubmitClientResult, Result: json.RawMessage(`null`)})
			resume(t, l)
		}},
	}
}

// settle waits until the session's run is finished or waits.
func settle(t *testing.T, l *engine.Loop) {
	t.Helper()
	h, err := l.Handle(t.Context(), "s")
	require.NoError(t, err)
	_, err = h.Result(t.Context())
	require.NoError(t, err)
}

// appends is a log that remembers where appends end: what is appended at once
// is seen at once.
type appends struct {
	eventlog.Log
	mu   sync.Mutex
	ends map[uint64]bool
}

func (a *appends) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	last, err := a.Log.Append(ctx, session, expected, entries)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ends[last] = true
	return last, err
}

// written returns what the agents have written, and where appends end.
func (c conversation) written(t *testing.T) ([]eventlog.Record, map[uint64]bool) {
	t.Helper()
	log := &appends{Log: memory.New(), ends: map[uint64]bool{}}
	l, err := engine.New(log, c.agents, nil)
	require.NoError(t, err)
	defer l.Stop()
	_, err = l.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "Go"}}})
	require.NoError(t, err)
	settle(t, l)
	if c.then != nil {
		c.then(t, l)
	}
	return logtest.Records(t, log, "s"), log.ends
}

// encoded returns the frames of each record of the message that begins after a
// record, as they are when the last one is the newest. The first element is the
// start part.
func encoded(before uint64, records []eventlog.Record) [][]uimessage.Frame {
	tree := projector.Fold(records...)
	e := uimessage.NewEncoder(uimessage.EncoderOptions{
		Root: "s", MessageID: uimessage.ReplyID(tree, nil), Answered: uimessage.Answered(tree),
	})
	frames := [][]uimessage.Frame{{e.Start()}}
	for _, r := range records {
		if r.Sequence > before && !tree.Dead.Covers(r) {
			frames = append(frames, e.Encode(r))
		}
	}
	return frames
}

func read(t *testing.T, c *uitest.Client, frames []uimessage.Frame) {
	t.Helper()
	for _, f := range frames {
		require.NoError(t, c.Read(f))
	}
}

// TestAReplayedMessageIsTheRenderedOne: at every record of a conversation, a
// client that reads the unfinished message from its beginning has the message
// that a snapshot shows.
func TestAReplayedMessageIsTheRenderedOne(t *testing.T) {
	for _, c := range conversations() {
		t.Run(c.name, func(t *testing.T) {
			records, ends := c.written(t)
			for i := range records {
				if !ends[records[i].Sequence] {
					continue
				}
				tree := projector.Fold(records[:i+1]...)
				if tree.Turn == nil || tree.Turn.Before == nil {
					continue
				}
				var client uitest.Client
				read(t, &client, slices.Concat(encoded(*tree.Turn.Before, records[:i+1])...))
				rendered := uimessage.Render(tree, nil)
				last := rendered[len(rendered)-1]
				var want []uitest.Part
				if last.Role == "assistant" {
					want = uitest.PartsOf(last.Parts)
					require.Equal(t, strings.TrimSuffix(last.ID, "-partial"), client.ID)
					require.Equal(t, tree.Waits(), last.ID == client.ID, "at rest")
				}
				require.Equal(t, uitest.Normal(want), uitest.Normal(client.Parts), "%d: %s %s", i, records[i].Type, records[i].Payload)
			}
		})
	}
}

// TestACutMessageContinues: after whichever frame a client is cut off, its parts
// and the frames that it lacks are the message of a client that is never cut off.
func TestACutMessageContinues(t *testing.T) {
	for _, c := range conversations() {
		t.Run(c.name, func(t *testing.T) {
			records, _ := c.written(t)
			whole := records
			for len(whole) > 0 && projector.Fold(whole...).Turn == nil { // the last state in which the message grows
				whole = whole[:len(whole)-1]
			}
			before := *projector.Fold(whole...).Turn.Before
			// A client that is connected all the time receives each record when it is the
			// newest.
			e := uimessage.NewEncoder(uimessage.EncoderOptions{Root: "s", MessageID: "msg-1"})
			live := [][]uimessage.Frame{{e.Start()}}
			for _, r := range records {
				if r.Sequence > before {
					live = append(live, e.Encode(r))
				}
			}
			var uncut uitest.Client
			read(t, &uncut, slices.Concat(live...))
			rendered := uimessage.Render(projector.Fold(records...), nil)
			require.Equal(t, uitest.Normal(uitest.PartsOf(rendered[len(rendered)-1].Parts)), uitest.Normal(uncut.Parts), "the history")
			again := encoded(before, records)
			for i := range live {
				for j := range live[i] {
					var client uitest.Client
					read(t, &client, slices.Concat(live[:i]...))
					read(t, &client, live[i][:j])
					read(t, &client, again[i][min(j, len(again[i])):])
					read(t, &client, slices.Concat(again[i+1:]...))
					require.Equal(t, uitest.Normal(uncut.Parts), uitest.Normal(client.Parts), "cut after %d frames of record %d", j, i)
				}
			}
		})
	}
}
