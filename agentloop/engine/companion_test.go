package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// companionCall is a call of a companion tool.
func companionCall(id, tool, args string) scripted.Call {
	return scripted.Call{ID: id, Name: agentloop.CompanionPrefix + tool, Arguments: json.RawMessage(args)}
}

// toldOf returns what the model got for its calls, by call id: the result, or the
// error.
func toldOf(s *projector.Session) map[string]string {
	told := map[string]string{}
	for _, m := range s.Messages {
		if m.Role == projector.RoleTool {
			if told[m.ToolCallID] = m.Error; m.Error == "" {
				told[m.ToolCallID] = string(m.Result)
			}
		}
	}
	return told
}

// A sub-agent's own sub-agent has an id as if it were called "m-sub-k".
func TestCompanionToolsReachTheCallersOwnSubAgentsOnly(t *testing.T) {
	g := newRig(t,
		agentloop.Agent{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "mid", Mode: agentloop.Blocking}}, Model: script(
			scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"mid","name":"m","initialMessage":"go"}`)}},
			scripted.Turn{ToolCalls: []scripted.Call{
				companionCall("2", "getChildStatus", `{"name":"m-sub-k"}`),
				companionCall("3", "sendMessage", `{"name":"m-sub-k","message":"tell me more"}`),
				companionCall("4", "waitForResult", `{"name":"m-sub-k"}`),
				companionCall("5", "terminateChild", `{"name":"m-sub-k"}`),
				companionCall("6", "listChildren", `{}`),
			}},
			scripted.Turn{Text: "done"})},
		agentloop.Agent{Name: "mid", SubAgents: []agentloop.SubAgent{{Agent: "kid"}}, Model: script(
			scripted.Turn{ToolCalls: []scripted.Call{{ID: "k", Name: "subagent__kid", Arguments: json.RawMessage(`{"message":"go"}`)}}},
			scripted.Turn{Text: "I say nothing."})},
		agentloop.Agent{Name: "kid", OutputSchema: json.RawMessage(`{"type":"object"}`), Model: script(
			scripted.Turn{ToolCalls: []scripted.Call{{ID: "f", Name: agentloop.FinishTool, Arguments: json.RawMessage(`{"secret":42}`)}}})},
	)
	g.start("s", "boss", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	told := toldOf(&state.Session)
	for _, id := range []string{"2", "3", "4", "5"} {
		require.Equal(t, `there is no sub-agent "m-sub-k"`, told[id])
	}
	require.NotContains(t, told["6"], "secret")
	require.Equal(t, 1, state.Get("s-agent-m-sub-k").TurnCount)
}

// unmoved is a model that continues with its script regardless of its input: notices of
// sub-agents arrive at any time.
type unmoved struct{ model.Model }

func (u unmoved) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	first := slices.IndexFunc(req.Messages, func(m model.Message) bool { return m.Role == model.RoleUser })
	var kept []model.Message
	for i, m := range req.Messages {
		if m.Role != model.RoleUser || i == first {
			kept = append(kept, m)
		}
	}
	req.Messages = kept
	return u.Model.Generate(ctx, req, emit)
}

func TestListsAndNewsCutLongOutputs(t *testing.T) {
	long := strings.Repeat(`é"`, 50_000)
	var g *rig
	g = newRig(t,
		agentloop.Agent{
			Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.Blocking}, {Agent: "pal", Mode: agentloop.NonBlocking}},
			Model: unmoved{script(
				scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)}},
				scripted.Turn{ToolCalls: []scripted.Call{
					companionCall("2", "listChildren", `{}`),
					companionCall("3", "getChildStatus", `{"name":"k"}`),
					companionCall("4", "spawnAgent", `{"agent":"pal","name":"p","initialMessage":"go"}`),
				}},
				call("settle", `{}`),
				scripted.Turn{Text: "done"})},
			Tools: []agentloop.Tool{{Name: "settle", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
				g.until("s", func(r eventlog.Record) bool { return r.Type == "run_ended" && r.Agent == "s-agent-p" })
				return nil, nil
			}}},
		},
		agentloop.Agent{Name: "kid", Model: script(scripted.Turn{Text: long})},
		agentloop.Agent{Name: "pal", Model: script(scripted.Turn{Text: long})})
	g.start("s", "boss", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)

	type status struct {
		Output    string `json:"output"`
		OutputCut bool   `json:"outputCut"`
	}
	told := toldOf(&state.Session)
	var list struct{ Children []status }
	require.NoError(t, json.Unmarshal([]byte(told["2"]), &list))
	require.Len(t, list.Children, 1)
	require.True(t, list.Children[0].OutputCut)
	require.Less(t, len(list.Children[0].Output), 50_000)
	require.True(t, strings.HasPrefix(list.Children[0].Output, `"é\"é\"`), "the beginning of the output as JSON")
	var one status
	require.NoError(t, json.Unmarshal([]byte(told["3"]), &one))
	require.Equal(t, status{Output: long}, one)
	news := state.Messages[slices.IndexFunc(state.Messages, func(m projector.Message) bool { return strings.Contains(m.Content, "finished its turn") })]
	require.True(t, news.Hidden())
	require.Contains(t, news.Content, `"outputCut":true`)
	require.Less(t, len(news.Content), 100_000)
}

// narrow is a log that takes records of 64 KiB.
type narrow struct{ eventlog.Log }

const narrowRecord = 64 << 10

func (l narrow) Info() eventlog.Info {
	info := l.Log.Info()
	info.MaxRecordBytes = narrowRecord
	return info
}

// A line separator has three bytes in the model's JSON, and six in ours.
func TestWhatACompanionToolCantRecordIsTheCallsFailure(t *testing.T) {
	boss := modelFunc(func(_ context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		if len(req.Messages) > 1 {
			return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "done"})
		}
		err := errors.Join(emit(model.ToolCallStart{ID: "1", Name: agentloop.CompanionPrefix + "spawnAgent"}),
			emit(model.ToolCallDelta{Text: `{"agent":"kid","name":"k","initialMessage":"`}))
		for range 10 {
			err = errors.Join(err, emit(model.ToolCallDelta{Text: strings.Repeat("\u2028", narrowRecord/50)}))
		}
		return model.Answer{StopReason: fact.StopToolUse}, errors.Join(err, emit(model.ToolCallDelta{Text: `"}`}))
	})
	g := newRigOn(t, narrow{memory.New()},
		agentloop.Agent{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.Blocking}}, Model: boss},
		agentloop.Agent{Name: "kid", Model: script(scripted.Turn{Text: "ok"})})
	g.start("s", "boss", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Contains(t, toldOf(&state.Session)["1"], "can't be recorded")
	require.Nil(t, state.Get("s-agent-k"))
}

// A sub-agent's output may be as large as a record, which leaves no room for
// what is said of it, nor for the names of the call that gets it.
func TestAnOutputThatFillsARecordIsCutOrTheCallsFailure(t *testing.T) {
	text, long := strings.Repeat("x", narrowRecord-400), strings.Repeat("i", eventlog.MaxID)
	g := newRigOn(t, narrow{memory.New()},
		agentloop.Agent{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.Blocking}}, Model: script(
			scripted.Turn{ToolCalls: []scripted.Call{companionCall(long, "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)}},
			scripted.Turn{ToolCalls: []scripted.Call{companionCall("2", "getChildStatus", `{"name":"k"}`)}},
			scripted.Turn{Text: "done"})},
		agentloop.Agent{Name: "kid", Model: script(scripted.Turn{Text: text})})
	g.start("s", "boss", "go")
	state := g.ended("s")
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, projector.SessionCompleted, state.Get("s-agent-k").Status)
	told := toldOf(&state.Session)
	require.Contains(t, told[long], "too large")
	require.Contains(t, told["2"], `"outputCut":true`)
}

// terminated is the status of a terminated sub-agent that its parent's model
// receives.
func terminated(output string) string {
	if output != "" {
		output = `,"output":"` + output + `"`
	}
	return `{"name":"k","agent":"kid","mode":"non-blocking","status":"terminated"` + output + `}`
}

// A sub-agent that was terminated takes no message, whether it was working or
// not: from its parent in this turn or in a later one, also after a restart.
func TestATerminatedSubAgentTakesNoMessage(t *testing.T) {
	for name, c := range map[string]struct {
		kid    model.Model
		output string
		code   string
	}{
		"one that works": {hanging{}, "", agentloop.CodeAborted},
		"an idle one":    {script(scripted.Turn{Text: "ok"}, scripted.Turn{Text: "never said"}), "ok", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var g *rig
			settle := agentloop.Tool{Name: "settle", Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) {
				if c.output != "" {
					g.until("s", func(r eventlog.Record) bool { return r.Type == "run_ended" && r.Agent == "s-agent-k" })
				}
				return nil, nil
			}}
			asks := func(n string) scripted.Turn {
				return scripted.Turn{ToolCalls: []scripted.Call{
					companionCall(n+"1", "sendMessage", `{"name":"k","message":"one thing more"}`),
					companionCall(n+"2", "getChildStatus", `{"name":"k"}`),
					companionCall(n+"3", "listChildren", `{}`),
					companionCall(n+"4", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`),
					companionCall(n+"5", "terminateChild", `{"name":"k"}`),
					companionCall(n+"6", "waitForResult", `{"name":"k"}`),
				}}
			}
			ends := asks("a")
			ends.ToolCalls = append([]scripted.Call{companionCall("3", "terminateChild", `{"name":"k"}`)}, ends.ToolCalls...)
			agents := []agentloop.Agent{
				{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.NonBlocking}, {Agent: "other", Mode: agentloop.Blocking}},
					Tools: []agentloop.Tool{settle}, Model: unmoved{script(
						scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)}},
						call("settle", `{}`), ends, scripted.Turn{Text: "done"}, asks("b"), scripted.Turn{Text: "done"})}},
				{Name: "kid", Model: c.kid},
				{Name: "other", Model: hanging{}},
			}
			g = newRig(t, agents...)
			check := func(g *rig, n string) {
				state := stateOf(t, g.log, "s")
				told := toldOf(&state.Session)
				require.Equal(t, `sub-agent "k" was terminated; it takes no message any more`, told[n+"1"])
				require.JSONEq(t, terminated(c.output), told[n+"2"])
				require.JSONEq(t, `{"children":[`+terminated(c.output)+`]}`, told[n+"3"])
				require.Contains(t, told[n+"4"], "the sub-agent's session exists")
				require.JSONEq(t, `{"name":"k","status":"terminated"}`, told[n+"5"])
				require.JSONEq(t, terminated(c.output), told[n+"6"])
				kid := state.Get("s-agent-k")
				require.True(t, kid.Terminated)
				require.Len(t, kid.Runs, 1)
				require.Nil(t, kid.Turn)
				if c.code != "" {
					require.Equal(t, c.code, kid.Error.Code)
				}
			}
			g.start("s", "boss", "go")
			g.ended("s")
			released(t, g.loop)
			require.JSONEq(t, `{"name":"k","status":"terminated"}`, toldOf(&stateOf(t, g.log, "s").Session)["3"])
			check(g, "a")
			require.Len(t, stateOf(t, g.log, "s").Children, 1)

			g.loop.Stop()
			second := newRigOn(t, g.log, agents...)
			_, err := second.loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "more"}}})
			require.NoError(t, err)
			second.comes("s", func(t *projector.Tree) bool { return t.Over() && t.TurnCount == 2 })
			released(t, second.loop)
			check(second, "b")

			_, err = second.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{FromSessionID: "s", NewSessionID: "f"})
			require.NoError(t, err)
			require.True(t, stateOf(t, g.log, "f").Get("f-agent-k").Terminated, "a fork keeps that")
			var before uint64
			for r, err := range g.log.Read(t.Context(), "s", 0, 0) {
				require.NoError(t, err)
				if r.Type == "model_turn" && r.Agent == "s" && before == 0 {
					before = r.Sequence
				}
				if r.Type == "tool_end" && r.Call == "1" {
					before = r.Sequence
				}
			}
			_, err = second.loop.TimeTravel.Rollback(t.Context(), "s", timetravel.Target{Sequence: before})
			require.NoError(t, err)
			require.False(t, stateOf(t, g.log, "s").Get("s-agent-k").Terminated, "a rollback to before it takes it back")
		})
	}
}

func TestAWaitForASubAgentIsADayAtMost(t *testing.T) {
	g := newRig(t,
		agentloop.Agent{Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: agentloop.Blocking}}, Model: script(
			scripted.Turn{ToolCalls: []scripted.Call{companionCall("1", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)}},
			scripted.Turn{ToolCalls: []scripted.Call{
				companionCall("2", "waitForResult", `{"name":"k","timeoutMs":9300000000000}`),
				companionCall("3", "waitForResult", `{"name":"k","timeoutMs":86400000.0}`),
			}},
			scripted.Turn{Text: "done"})},
		agentloop.Agent{Name: "kid", Model: script(scripted.Turn{Text: "ok"})})
	g.start("s", "boss", "go")
	state := g.ended("s")
	require.Contains(t, toldOf(&state.Session)["2"], "maximum")
	require.Contains(t, toldOf(&state.Session)["3"], `"output":"ok"`)
	g.until("s", func(r eventlog.Record) bool { // the deadline of the second
		var f fact.CallSuspended
		if r.Call != "3" || json.Unmarshal(r.Payload, &f) != nil || f.Deadline == 0 {
			return false
		}
		require.EqualValues(t, 86_400_000, f.Deadline-f.Timestamp)
		return true
	})
}
