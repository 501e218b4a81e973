package engine_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/verify"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// handsOn hands what the user says to its tool, and says what it has got, with
// its system prompt. It counts the tool's executions.
func handsOn(tool agentloop.Tool, executed *atomic.Int64) agentloop.Agent {
	if !tool.Client {
		tool.Execute = func(_ context.Context, _ *agentloop.Call, args json.RawMessage) (any, error) {
			executed.Add(1)
			return args, nil
		}
	}
	return agentloop.Agent{
		Name: "a", SystemPrompt: "Own.", Tools: []agentloop.Tool{tool},
		Model: modelFunc(func(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
			last := req.Messages[len(req.Messages)-1]
			said := scripted.Turn{Text: req.System + " " + last.Content}
			if last.Role == model.RoleUser {
				args, _ := json.Marshal(map[string]string{"q": last.Content})
				said = scripted.Turn{ToolCalls: []scripted.Call{{ID: "c", Name: tool.Name, Arguments: args}}}
			}
			if strings.Contains(last.Content, "break") {
				return model.Answer{}, &model.Error{Code: "provider_error", Message: "broken"}
			}
			return scripted.New([]scripted.Turn{said}, nil).Generate(ctx, req, emit)
		}),
	}
}

// branch forks s and runs the fork to its end, or until it waits.
func (g *rig) branch(req timetravel.ForkRequest) *projector.Tree {
	g.t.Helper()
	req.FromSessionID, req.Run = "s", true
	forked, err := g.loop.TimeTravel.Fork(g.t.Context(), req)
	require.NoError(g.t, err)
	require.NotEmpty(g.t, forked.RunID)
	_, err = g.loop.TimeTravel.Fork(g.t.Context(), req)
	if req.NewSessionID != "" {
		require.NoError(g.t, err, "the same again")
	}
	state := g.comes(forked.SessionID, func(t *projector.Tree) bool {
		return len(t.Runs) > 0 && (t.Turn == nil || t.Suspended())
	})
	require.Empty(g.t, state.Parked)
	require.Equal(g.t, forked.RunID, state.Runs[0].RunID)
	require.Equal(g.t, forked.Edits, state.ForkedFrom.Edits)
	require.Equal(g.t, forked.FromSequence, state.ForkedFrom.Sequence)
	return state
}

func puts(t *testing.T, text string, s *projector.Tree) {
	t.Helper()
	var got string
	require.NoError(t, json.Unmarshal(s.Output, &got), string(s.Output))
	require.Equal(t, text, got)
}

func TestAForkRunsOnWithWhatWasEdited(t *testing.T) {
	t.Parallel()
	var executed atomic.Int64
	g := newRig(t, handsOn(agentloop.Tool{Name: "look"}, &executed))
	g.start("s", "a", "Rome")
	puts(t, `Own. {"q":"Rome"}`, g.ended("s"))
	released(t, g.loop)
	head := stateOf(t, g.log, "s").Head
	prompt, first := "Other.", 0

	f := g.branch(timetravel.ForkRequest{NewSessionID: "m", Edit: timetravel.ForkEdit{Message: &timetravel.MessageEdit{Content: "Oslo"}}})
	puts(t, `Own. {"q":"Oslo"}`, f)
	require.Equal(t, "Oslo", f.Messages[0].Content)
	require.Len(t, f.Messages, 4, "the answers to the other message are gone")
	require.Equal(t, 0, *f.ForkedFrom.Edits.Message)
	require.EqualValues(t, 2, executed.Load())

	f = g.branch(timetravel.ForkRequest{NewSessionID: "r", Edit: timetravel.ForkEdit{
		ToolResult: &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`{"sky":"dark"}`)},
	}})
	puts(t, `Own. {"sky":"dark"}`, f)
	require.Len(t, f.Messages, 4)
	require.EqualValues(t, 2, executed.Load(), "it has its result")

	f = g.branch(timetravel.ForkRequest{NewSessionID: "all", Edit: timetravel.ForkEdit{
		Message: &timetravel.MessageEdit{Content: "Bern", Index: &first}, SystemPrompt: &prompt,
	}})
	puts(t, `Other. {"q":"Bern"}`, f)
	h, err := g.loop.Execute(t.Context(), engine.StartRequest{SessionID: "all", AgentType: "a", Messages: []agentloop.Input{{Content: "Ulm"}}})
	require.NoError(t, err)
	result, err := h.Result(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `"Other. {\"q\":\"Ulm\"}"`, string(result.Output), "a later turn has the same prompt")
	released(t, g.loop)
	_, err = g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "all", NewSessionID: "again"})
	require.NoError(t, err)
	require.Equal(t, &prompt, stateOf(t, g.log, "again").SystemPrompt, "so has a fork of the fork")

	f = g.branch(timetravel.ForkRequest{NewSessionID: "more", Messages: []agentloop.Input{{Content: "Lima"}}})
	puts(t, `Own. {"q":"Lima"}`, f)
	require.Len(t, f.Messages, 8, "a new turn")

	require.Equal(t, head, stateOf(t, g.log, "s").Head, "the session itself is as it was")
	for _, session := range []string{"m", "r", "all", "again", "more"} {
		a := handsOn(agentloop.Tool{Name: "look"}, new(atomic.Int64))
		found, err := verify.Session(t.Context(), g.log.Read(t.Context(), session, 0, 0), []agentloop.Agent{a}, nil)
		require.NoError(t, err)
		require.Nil(t, found.Differs)
	}
}

// A call that waits can be given its result: a client's as if it had come, one
// to be approved without being executed.
func TestAForkGivesAWaitingCallItsResult(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]agentloop.Tool{
		"client":   {Name: "ask", Client: true, OutputSchema: json.RawMessage(`{"type":"object"}`)},
		"approval": {Name: "pay", RequireApproval: agentloop.AlwaysApprove},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var executed atomic.Int64
			g := newRig(t, handsOn(tool, &executed))
			g.start("s", "a", "Rome")
			g.comes("s", func(s *projector.Tree) bool { return s.Suspended() })
			released(t, g.loop)
			edit := timetravel.ForkEdit{ToolResult: &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`{"n":1}`)}}
			puts(t, `Own. {"n":1}`, g.branch(timetravel.ForkRequest{NewSessionID: "f", Edit: edit}))
			edit.ToolResult = &timetravel.ResultEdit{ToolCallID: "c", Error: "no luck"}
			puts(t, `Own. Error: no luck`, g.branch(timetravel.ForkRequest{NewSessionID: "e", Edit: edit}))
			require.Zero(t, executed.Load())
			require.True(t, stateOf(t, g.log, "s").Suspended())
			if tool.Client {
				edit.ToolResult = &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`7`)}
				g.badEdit(edit, "edit.toolResult.result")
			}
			// Without a run it waits until it is resumed.
			edit.ToolResult = &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`{"n":2}`)}
			_, err := g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "later", Edit: edit})
			require.NoError(t, err)
			require.Empty(t, stateOf(t, g.log, "later").Runs)
			puts(t, `Own. {"n":2}`, g.branch(timetravel.ForkRequest{NewSessionID: "later", Edit: edit}))
		})
	}
}

// badEdit has nothing made of a request.
func (g *rig) badEdit(edit timetravel.ForkEdit, field string) {
	g.t.Helper()
	_, err := g.loop.TimeTravel.Fork(g.t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "bad", Edit: edit, Run: true})
	var problem *eventlog.ValidationError
	require.ErrorAs(g.t, err, &problem)
	require.Equal(g.t, field, problem.Field)
	_, err = g.log.Head(g.t.Context(), "bad")
	require.ErrorIs(g.t, err, eventlog.ErrSessionNotFound)
}

// TestAnEditThatGoesIsRefused: a message that came after what is edited as well
// is not there any more.
func TestAnEditThatGoesIsRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t, handsOn(agentloop.Tool{Name: "look"}, new(atomic.Int64)))
	g.start("s", "a", "Rome")
	g.ended("s")
	released(t, g.loop)
	_, err := g.loop.Execute(t.Context(), engine.StartRequest{
		SessionID: "s", AgentType: "a", Messages: []agentloop.Input{{Content: "More"}},
	})
	require.NoError(t, err)
	g.comes("s", func(t *projector.Tree) bool { return t.TurnCount == 2 && t.Turn == nil })
	released(t, g.loop)
	g.badEdit(timetravel.ForkEdit{
		Message:    &timetravel.MessageEdit{Content: "x"},
		ToolResult: &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`1`)},
	}, "edit.message")
}

func TestBadEditsMakeNoFork(t *testing.T) {
	t.Parallel()
	g := newRig(t, handsOn(agentloop.Tool{Name: "look"}, new(atomic.Int64)))
	g.start("s", "a", "Rome")
	g.ended("s")
	released(t, g.loop)
	index := func(i int) *int { return &i }
	message := func(content string, i *int) timetravel.ForkEdit {
		return timetravel.ForkEdit{Message: &timetravel.MessageEdit{Content: content, Index: i}}
	}
	result := func(call, result, problem string) timetravel.ForkEdit {
		e := &timetravel.ResultEdit{ToolCallID: call, Error: problem}
		if result != "" {
			e.Result = json.RawMessage(result)
		}
		return timetravel.ForkEdit{ToolResult: e}
	}
	prompt := strings.Repeat("x", timetravel.MaxSystemPrompt+1)
	for _, c := range []struct {
		edit  timetravel.ForkEdit
		field string
	}{
		{message("", nil), "edit.message.content"},
		{message("a\xff", nil), "edit.message.content"},
		{message("x", index(1)), "edit.message.index"}, // the assistant's
		{message("x", index(4)), "edit.message.index"},
		{message("x", index(-1)), "edit.message.index"},
		{result("other", `1`, ""), "edit.toolResult.toolCallId"},
		{result("", `1`, ""), "edit.toolResult.toolCallId"},
		{result("c", "", ""), "edit.toolResult.result"},
		{result("c", `1`, "both"), "edit.toolResult.result"},
		{result("c", `{`, ""), "edit.toolResult.result"},
		{result("c", strings.Repeat("[", 2000)+strings.Repeat("]", 2000), ""), "edit.toolResult.result"},
		{result("c", `"`+strings.Repeat("x", engine.MaxSubmittedResult)+`"`, ""), "edit.toolResult.result"},
		{result("c", "", strings.Repeat("x", engine.MaxSubmittedError+1)), "edit.toolResult.error"},
		{timetravel.ForkEdit{SystemPrompt: &prompt}, "edit.systemPrompt"},
		{timetravel.ForkEdit{Message: message("x", nil).Message, ToolResult: result("c", `1`, "").ToolResult}, "edit.toolResult.toolCallId"}, // gone with the answer
	} {
		g.badEdit(c.edit, c.field)
	}
	ctx := t.Context()
	short := "x"
	for _, c := range []struct {
		req  timetravel.ForkRequest
		want error
	}{
		{timetravel.ForkRequest{Run: true}, agentloop.ErrNothingToResume},
		{timetravel.ForkRequest{Run: true, Edit: timetravel.ForkEdit{SystemPrompt: &short}}, agentloop.ErrNothingToResume},
	} {
		c.req.FromSessionID, c.req.NewSessionID = "s", "bad"
		_, err := g.loop.TimeTravel.Fork(ctx, c.req)
		require.ErrorIs(t, err, c.want)
	}
	var problem *eventlog.ValidationError
	_, err := g.loop.TimeTravel.Fork(ctx, timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "bad", Messages: []agentloop.Input{{Content: "x"}}})
	require.ErrorAs(t, err, &problem)
	_, err = g.log.Head(ctx, "bad")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)

	g.branch(timetravel.ForkRequest{NewSessionID: "f", Edit: message("Oslo", nil)})
	for _, other := range []timetravel.ForkEdit{{}, message("Bern", nil), {SystemPrompt: &short}} {
		_, err := g.loop.TimeTravel.Fork(ctx, timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", Edit: other})
		require.ErrorIs(t, err, agentloop.ErrSessionExists)
	}
	released(t, g.loop)
	_, err = g.log.Erase(ctx, "s")
	require.NoError(t, err)
	g.branch(timetravel.ForkRequest{NewSessionID: "f", Edit: message("Oslo", nil)})
	_, err = g.loop.TimeTravel.Fork(ctx, timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f", Edit: message("Bern", nil)})
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
}

// A run that has failed before it was answered is answered in a new turn.
func TestAForkAnswersWhatHadFailed(t *testing.T) {
	t.Parallel()
	g := newRig(t, handsOn(agentloop.Tool{Name: "look"}, new(atomic.Int64)))
	g.start("s", "a", "break")
	require.Equal(t, projector.SessionFailed, g.ended("s").Status)
	f := g.branch(timetravel.ForkRequest{NewSessionID: "f", Edit: timetravel.ForkEdit{Message: &timetravel.MessageEdit{Content: "Rome"}}})
	require.Equal(t, projector.SessionCompleted, f.Status)
	puts(t, `Own. {"q":"Rome"}`, f)
}

// The result of a tool that finishes the turn is the output, also an edited one.
func TestAForkEndsWithAnEditedOutput(t *testing.T) {
	t.Parallel()
	var executed atomic.Int64
	g := newRig(t, handsOn(agentloop.Tool{Name: "done", FinishWith: true}, &executed))
	g.start("s", "a", "Rome")
	require.JSONEq(t, `{"q":"Rome"}`, string(g.ended("s").Output))
	released(t, g.loop)
	f := g.branch(timetravel.ForkRequest{NewSessionID: "f", Edit: timetravel.ForkEdit{
		ToolResult: &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`{"q":"Oslo"}`)},
	}})
	require.JSONEq(t, `{"q":"Oslo"}`, string(f.Output))
	require.EqualValues(t, 1, executed.Load())
}

func TestAnEditedOutputFitsTheAgentsSchema(t *testing.T) {
	t.Parallel()
	agent := handsOn(agentloop.Tool{Name: "done", FinishWith: true}, new(atomic.Int64))
	agent.OutputSchema = json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`)
	g := newRig(t, agent)
	g.start("s", "a", "Rome")
	require.JSONEq(t, `{"q":"Rome"}`, string(g.ended("s").Output))
	released(t, g.loop)
	g.badEdit(timetravel.ForkEdit{ToolResult: &timetravel.ResultEdit{ToolCallID: "c", Result: json.RawMessage(`{"q":1}`)}}, "edit.toolResult.result")
}

// A sub-agent's call is edited by its own id; the one that waits for the
// sub-agent has no result of its own.
func TestAForkEditsASubAgentsCall(t *testing.T) {
	t.Parallel()
	g := newRig(t, handsOver("boss"), asker())
	g.start("s", "boss", "go")
	g.comes("s", func(t *projector.Tree) bool { return t.Suspended() })
	released(t, g.loop)
	g.badEdit(timetravel.ForkEdit{ToolResult: &timetravel.ResultEdit{ToolCallID: "k", Result: json.RawMessage(`1`)}}, "edit.toolResult.toolCallId")
	f := g.branch(timetravel.ForkRequest{NewSessionID: "f", Edit: timetravel.ForkEdit{
		ToolResult: &timetravel.ResultEdit{ToolCallID: "call-ask", Result: json.RawMessage(`1`)},
	}})
	require.Equal(t, projector.SessionCompleted, f.Status)
}
