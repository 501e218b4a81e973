package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/admin"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// reports says what it was asked, or calls a tool that the message names.
func reports() agentloop.Agent {
	return agentloop.Agent{
		Name: "reporter", SystemPrompt: "Report.", Tools: []agentloop.Tool{addTool()},
		Model: modelFunc(func(_ context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			last := req.Messages[len(req.Messages)-1]
			for _, tool := range req.Tools {
				if last.Role == model.RoleUser && last.Content == "call "+tool.Name {
					return model.Answer{StopReason: fact.StopToolUse}, cmp.Or(
						emit(model.ToolCallStart{ID: "c", Name: tool.Name}), emit(model.ToolCallDelta{Text: `{"n":1}`}), emit(model.ToolCallEnd{}))
				}
			}
			text := fmt.Sprintf("system %q, %d tools, %d messages, last %s", req.System, len(req.Tools), len(req.Messages), last.Content)
			return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: text})
		}),
	}
}

func clientTool(name string) fact.ClientTool {
	return fact.ClientTool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

// Instructions and tools hold for their own run; a call of such a tool waits for the client,
// whose answer comes with the request for the next run.
func TestOptionsOfARun(t *testing.T) {
	t.Parallel()
	g := newRig(t, reports())
	run, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "reporter", Messages: []agentloop.Input{{Content: "call weather"}},
		Options: fact.RunOptions{Instructions: "Be brief.", Tools: []fact.ClientTool{clientTool("weather")}},
	})
	require.NoError(t, err)
	result, err := run.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, fact.RunClientTool, result.Status)
	require.Equal(t, []string{"c"}, result.Suspended.ToolCallIDs)

	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", After: "run-other"})
	require.ErrorIs(t, err, agentloop.ErrNotLast)
	answer := []engine.Submission{{SessionID: "s", ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage(`"fog"`)}}
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", Answers: append(answer, engine.Submission{
		ToolCallID: "none", Kind: fact.SubmitClientResult, Result: json.RawMessage(`1`),
	})})
	require.ErrorIs(t, err, agentloop.ErrCallNotFound, "and nothing is stored")
	var problem *eventlog.ValidationError
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{
		SessionID: "s", Answers: answer, Options: fact.RunOptions{Tools: []fact.ClientTool{clientTool("add")}},
	})
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "tools[0].name", problem.Field)
	_, err = g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s", After: run.RunID, Answers: answer})
	require.NoError(t, err)
	done := g.ended("s")
	require.JSONEq(t, `"system \"Report.\", 1 tools, 3 messages, last \"fog\""`, string(done.Output))
	require.Equal(t, fact.PendingClient, done.Messages[2].AnsweredAs)

	for name, tools := range map[string][]fact.ClientTool{
		"tools[0].name": {clientTool("add")}, "tools[1]": {clientTool("a"), clientTool("a")}, "tools[0]": {clientTool("__finish__")},
	} {
		_, err = g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: "bad", AgentType: "reporter", Messages: []agentloop.Input{{Content: "go"}}, Options: fact.RunOptions{Tools: tools},
		})
		require.ErrorAs(t, err, &problem)
		require.Equal(t, name, problem.Field)
	}
}

// A session can begin without an agent, with messages of another conversation: its first run
// names the agent, which sees them.
func TestMessagesOfAnotherConversation(t *testing.T) {
	t.Parallel()
	g := newRig(t, reports())
	added := func(m fact.MessageAdded) agentloop.Input { return agentloop.Input{Added: &m} }
	past := []agentloop.Input{
		added(fact.MessageAdded{Role: fact.AddedSystem, Content: "Be a pirate."}),
		{Content: "what is it like?"},
		added(fact.MessageAdded{Role: fact.AddedAssistant, Parts: []fact.TurnPart{
			{ToolCall: &fact.ToolCall{ID: "c", Name: "weather", Arguments: json.RawMessage(`{}`)}},
		}}),
		added(fact.MessageAdded{Role: fact.AddedTool, ToolCallID: "c", ToolName: "weather", Result: json.RawMessage(`"fog"`)}),
	}
	sessions := g.loop.Admin
	require.NoError(t, sessions.Create(t.Context(), createRequest("s", past)))
	require.ErrorIs(t, sessions.Create(t.Context(), createRequest("s", nil)), agentloop.ErrSessionExists)
	more := []agentloop.Input{{Content: "and now?", MessageID: "m"}}
	for range 2 { // the second time it is a repetition
		after, last, err := sessions.AddMessages(t.Context(), "s", more)
		require.NoError(t, err)
		require.Equal(t, []uint64{5, 6}, []uint64{after, last})
	}
	_, _, err := sessions.AddMessages(t.Context(), "other", nil)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	require.NoError(t, sessions.ReplaceMetadata(t.Context(), "s", map[string]string{"k": "v"}))
	require.Empty(t, stateOf(t, g.log, "s").AgentType)

	run, err := g.loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "reporter", Messages: []agentloop.Input{{Content: "go"}}})
	require.NoError(t, err)
	done := g.ended("s")
	require.JSONEq(t, `"system \"Report.\\n\\nBe a pirate.\", 1 tools, 5 messages, last go"`, string(done.Output))
	require.Equal(t, "reporter", done.AgentType)
	require.Equal(t, map[string]string{"k": "v"}, done.Metadata)

	require.NoError(t, sessions.DeleteRun(t.Context(), "s", run.RunID))
	require.NoError(t, sessions.DeleteRun(t.Context(), "s", run.RunID))
	require.ErrorIs(t, sessions.DeleteRun(t.Context(), "s", "run-other"), agentloop.ErrNothingToResume)
	require.True(t, stateOf(t, g.log, "s").Runs[0].Deleted)
	require.Empty(t, stateOf(t, g.log, "s").Parked)
}

func createRequest(session string, messages []agentloop.Input) admin.CreateRequest {
	return admin.CreateRequest{SessionID: session, Messages: messages}
}

// A sweep erases sessions that are kept only for their run, once that has ended or waits.
func TestEphemeralSessions(t *testing.T) {
	t.Parallel()
	g := newRigOn(t, memory.New(), reports())
	for session, message := range map[string]string{"ended": "go", "waits": "call weather", "kept": "go"} {
		run, err := g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: session, AgentType: "reporter", Messages: []agentloop.Input{{Content: message}},
			Options: fact.RunOptions{Ephemeral: session != "kept", Tools: []fact.ClientTool{clientTool("weather")}},
		})
		require.NoError(t, err)
		_, err = run.Result(t.Context())
		require.NoError(t, err)
	}
	swept, err := g.loop.Admin.Sweep(t.Context(), admin.SweepOptions{OnlyEphemeral: true})
	require.NoError(t, err)
	require.Equal(t, admin.Swept{Detected: 2, AlreadyTerminal: 2}, swept)
	for _, session := range []string{"ended", "waits"} {
		_, err := g.log.Head(t.Context(), session)
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	require.Equal(t, projector.SessionCompleted, stateOf(t, g.log, "kept").Status)
}

// overtaken is a log that calls a function once when a session was read.
type overtaken struct {
	eventlog.Log
	then atomic.Pointer[func()]
}

func (l *overtaken) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	return func(yield func(eventlog.Record, error) bool) {
		for r, err := range l.Log.Read(ctx, session, from, to) {
			if !yield(r, err) {
				break
			}
		}
		if f := l.then.Swap(nil); f != nil {
			(*f)()
		}
	}
}

// A sweep erases the session that it has looked at: the next one of the id stays.
func TestASweepLeavesTheNextSession(t *testing.T) {
	t.Parallel()
	log := &overtaken{Log: memory.New()}
	g := newRigOn(t, log, reports())
	begin := func(ephemeral bool) {
		_, err := g.loop.Execute(t.Context(), engine.StartRequest{
			SessionID: "s", AgentType: "reporter", Messages: []agentloop.Input{{Content: "go"}}, Options: fact.RunOptions{Ephemeral: ephemeral},
		})
		require.NoError(t, err)
		g.ended("s")
	}
	begin(true)
	next := func() {
		_, err := g.loop.Admin.Erase(t.Context(), "s")
		require.NoError(t, err)
		begin(false)
	}
	g.loop = newRigOn(t, log, reports()).loop // it has not read the session
	log.then.Store(&next)
	swept, err := g.loop.Admin.Sweep(t.Context(), admin.SweepOptions{OnlyEphemeral: true})
	require.NoError(t, err)
	require.Equal(t, admin.Swept{Detected: 1, AlreadyTerminal: 1}, swept)
	require.Nil(t, log.then.Load())
	require.Equal(t, projector.SessionCompleted, stateOf(t, log, "s").Status)
}

// A request with the name of a run begins none; its state changes the session's by members.
func TestNamedRuns(t *testing.T) {
	t.Parallel()
	g := newRig(t, reports())
	first := engine.StartRequest{
		SessionID: "s", AgentType: "reporter", Messages: []agentloop.Input{{Content: "call weather"}}, State: json.RawMessage(`{"a":1,"b":{"c":1}}`),
		Options: fact.RunOptions{Name: "one", Tools: []fact.ClientTool{clientTool("weather")}},
	}
	run, err := g.loop.Execute(t.Context(), first)
	require.NoError(t, err)
	_, err = run.Result(t.Context())
	require.NoError(t, err)
	again, err := g.loop.Execute(t.Context(), first)
	require.NoError(t, err)
	require.Equal(t, run.RunID, again.RunID)
	second := engine.ResumeRequest{
		SessionID: "s", MergeState: json.RawMessage(`{"b":{ "c":1},"d/~":[1]}`), Options: fact.RunOptions{Name: "two"},
		Answers: []engine.Submission{{ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage(`"fog"`), MessageID: "m-1"}},
	}
	next, err := g.loop.Resume(t.Context(), second)
	require.NoError(t, err)
	done := g.ended("s")
	require.JSONEq(t, `{"a":1,"b":{"c":1},"d/~":[1]}`, done.CustomState.String())
	require.Equal(t, "m-1", done.Messages[2].MessageID)
	for range 2 {
		repeated, err := g.loop.Resume(t.Context(), second)
		require.NoError(t, err)
		require.Equal(t, next.RunID, repeated.RunID)
		require.Equal(t, next.RunID, done.RunNamed("two").RunID)
	}
	after := g.ended("s")
	require.Equal(t, done.Head, after.Head, "nothing is appended")
	var problem *eventlog.ValidationError
	_, err = g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "reporter", Messages: []agentloop.Input{{Content: "go"}}, MergeState: json.RawMessage(`[]`),
	})
	require.ErrorAs(t, err, &problem)
	require.Equal(t, "state", problem.Field)
}
