package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/projector"
)

// subAgentChunks are the beginnings and the ends of a sub-agent's turns that
// clients of its parent get, in order: the call's id, and for an end what came
// of it.
func subAgentChunks(t *testing.T, log eventlog.Log, session, child string) (told []string) {
	t.Helper()
	for c, err := range eventlog.Chunks(eventlog.Effective(t.Context(), log, session, 0, 0)) {
		require.NoError(t, err)
		switch c := c.Chunk.(type) {
		case *eventlog.SubAgentStart:
			if c.SubSessionID == child {
				told = append(told, "start "+c.CallID)
			}
		case *eventlog.SubAgentEnd:
			if c.SubSessionID == child {
				told = append(told, "end "+c.CallID+" "+string(c.Result))
			}
		}
	}
	return told
}

// pairsOf checks that a session's stream reports each turn of each sub-agent
// that it has begun and, unless the turn continues, that it has ended, once each.
// The beginnings of a fork's turns may be in the other session.
func pairsOf(t *testing.T, log eventlog.Log, session string) {
	t.Helper()
	tree := stateOf(t, log, session)
	if tree.ForkedFrom != nil {
		return
	}
	for _, s := range tree.Sessions() {
		if s.Child == nil {
			continue
		}
		var begun, ended []string
		for _, said := range subAgentChunks(t, log, session, s.SessionID) {
			what, call, _ := strings.Cut(said, " ")
			call, _, _ = strings.Cut(call, " ")
			if what == "start" {
				require.Len(t, ended, len(begun), "%s: the turn before has ended", s.SessionID)
				begun = append(begun, call)
			} else {
				ended = append(ended, call)
				require.Equal(t, begun, ended, "%s: what ends has begun, by the same call", s.SessionID)
			}
		}
		turns := s.TurnCount
		if s.Child.Remote {
			turns = min(len(begun), 1)
		}
		require.Len(t, begun, turns, "%s: turns that have begun", s.SessionID)
		if parent := tree.Get(s.Child.ParentSessionID); s.Turn == nil && (!s.Child.Remote || parent.Turn == nil) && !waitsFor(parent, s.SessionID) {
			require.Len(t, ended, turns, "%s: turns that have ended", s.SessionID)
		}
	}
}

// waitsFor reports whether a call of the session waits for a sub-agent.
func waitsFor(s *projector.Session, child string) bool {
	if s.Turn == nil || s.Turn.Step == nil {
		return false
	}
	for _, c := range s.Turn.Step.Pending() {
		if c.Pending != nil && c.Pending.Child == child {
			return true
		}
	}
	return false
}

// family is a boss that makes calls, one answer after the other, and its kid.
func family(mode agentloop.PersistentMode, kid model.Model, calls ...scripted.Call) []agentloop.Agent {
	var turns []scripted.Turn
	for _, c := range calls {
		turns = append(turns, scripted.Turn{ToolCalls: []scripted.Call{c}})
	}
	return []agentloop.Agent{
		{
			Name: "boss", PersistentAgents: []agentloop.PersistentAgent{{Agent: "kid", Mode: mode}},
			Model: unmoved{script(append(turns, scripted.Turn{Text: "Done."})...)},
		},
		{Name: "kid", MaxRetries: -1, Model: kid},
	}
}

const kidID = "s-agent-k"

var (
	spawns  = companionCall("1", "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)
	sends   = companionCall("2", "sendMessage", `{"name":"k","message":"go on"}`)
	ends    = companionCall("3", "terminateChild", `{"name":"k","reason":"enough"}`)
	kidOver = func(turns int) func(t *projector.Tree) bool {
		return func(t *projector.Tree) bool {
			kid := t.Get(kidID)
			return t.Turn == nil && kid != nil && kid.Over() && kid.TurnCount == turns
		}
	}
)

func TestClientsHearOfEachTurnOfABlockingSubAgent(t *testing.T) {
	g := newRig(t, family(agentloop.Blocking, unmoved{script(scripted.Turn{Text: "One."}, scripted.Turn{Text: "Two."})}, spawns, sends)...)
	g.start("s", "boss", "go")
	g.comes("s", kidOver(2))
	require.Equal(t, []string{"start 1", `end 1 "One."`, "start 2", `end 2 "Two."`}, subAgentChunks(t, g.log, "s", kidID))
	pairsOf(t, g.log, "s")
	types := g.types("s")
	for i, typ := range types {
		if typ == "subagent_end" {
			require.Equal(t, []string{"[tool_result]", "tool_end"}, types[i+1:i+3])
		}
	}
}

// The turn of the parent is finished when the sub-agent's ends.
func TestClientsHearOfEachTurnOfASubAgentThatNobodyWaitsFor(t *testing.T) {
	kid := newGated(unmoved{script(scripted.Turn{Text: longAnswer}, scripted.Turn{Text: "Two."})})
	agents := family(agentloop.NonBlocking, kid, spawns)
	agents[0].Model = unmoved{script(scripted.Turn{ToolCalls: []scripted.Call{spawns}}, scripted.Turn{Text: "It works."})}
	g := newRig(t, agents...)
	g.start("s", "boss", "go")
	g.ended("s")
	require.Equal(t, []string{"start 1"}, subAgentChunks(t, g.log, "s", kidID))
	close(kid.goOn)
	state := g.comes("s", kidOver(1))
	output, _ := json.Marshal(longAnswer)
	require.Equal(t, []string{"start 1", "end 1 " + string(output)}, subAgentChunks(t, g.log, "s", kidID))
	require.Equal(t, projector.SessionCompleted, state.Status)
	require.Equal(t, eventlog.StreamCompleted, state.StreamStatus)
	released(t, g.loop)
	pairsOf(t, g.log, "s")
	asides := stateOf(t, g.log, "s").Asides
	require.Equal(t, "subagent_end", asides[len(asides)-1].Type, "a client that reads the conversation later sees it, too")

	second := newRigOn(t, g.log, append([]agentloop.Agent{{
		Name: "boss", PersistentAgents: agents[0].PersistentAgents,
		Model: unmoved{script(scripted.Turn{}, scripted.Turn{}, scripted.Turn{ToolCalls: []scripted.Call{sends}}, scripted.Turn{Text: "Again."})},
	}}, agents[1])...)
	_, err := second.loop.Execute(t.Context(), engine.StartRequest{SessionID: "s", AgentType: "boss", Messages: []agentloop.Input{{Content: "more"}}})
	require.NoError(t, err)
	second.comes("s", kidOver(2))
	require.Equal(t, []string{"start 2", `end 2 "Two."`}, subAgentChunks(t, g.log, "s", kidID)[2:])
	pairsOf(t, g.log, "s")
}

func TestClientsHearOfTheEndOfATurnThatFails(t *testing.T) {
	failing := func() model.Model {
		return scripted.New([]scripted.Turn{{Err: &model.Error{Code: "provider_error", Message: "no luck"}}}, nil)
	}
	for name, c := range map[string]struct {
		mode  agentloop.PersistentMode
		kid   model.Model
		calls []scripted.Call
		want  string
	}{
		"a blocking one fails":                {agentloop.Blocking, failing(), []scripted.Call{spawns}, `end 1 {"error":"no luck"}`},
		"one that nobody waits for fails":     {agentloop.NonBlocking, failing(), []scripted.Call{spawns}, `end 1 {"error":"no luck"}`},
		"one that nobody waits for is ended":  {agentloop.NonBlocking, hanging{}, []scripted.Call{spawns, ends}, `end 1 {"error":"the run was aborted: enough"}`},
		"one that works gets a message first": {agentloop.NonBlocking, hanging{}, []scripted.Call{spawns, sends, ends}, `end 1 {"error":"the run was aborted: enough"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, family(c.mode, c.kid, c.calls...)...)
			g.start("s", "boss", "go")
			g.comes("s", kidOver(1))
			require.Equal(t, []string{"start 1", c.want}, subAgentChunks(t, g.log, "s", kidID))
			released(t, g.loop)
			pairsOf(t, g.log, "s")
		})
	}
}

// An abort reaches the sub-agents first. An interruption ends no turn.
func TestClientsHearOfTheEndOfATurnThatIsAborted(t *testing.T) {
	for _, mode := range []agentloop.PersistentMode{agentloop.Blocking, agentloop.NonBlocking} {
		t.Run(string(mode), func(t *testing.T) {
			agents := family(mode, hanging{}, spawns)
			if mode == agentloop.NonBlocking {
				agents[0].Model = script(scripted.Turn{ToolCalls: []scripted.Call{spawns}}, call("wait", `{}`))
				agents[0].Tools = []agentloop.Tool{{Name: "wait", Client: true}}
			}
			g := newRig(t, agents...)
			g.start("s", "boss", "go")
			g.until("s", func(r eventlog.Record) bool { return r.Type == "run_requested" && r.Agent == kidID })
			require.NoError(t, g.loop.Interrupt(t.Context(), "s", "lunch"))
			require.NoError(t, g.loop.AwaitStop(t.Context(), "s"))
			require.Equal(t, []string{"start 1"}, subAgentChunks(t, g.log, "s", kidID))
			released(t, g.loop)

			second := newRigOn(t, g.log, agents...)
			_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
			require.NoError(t, err)
			require.NoError(t, second.loop.Abort(t.Context(), "s", "enough"))
			second.comes("s", kidOver(1))
			require.Equal(t, []string{"start 1", `end 1 {"error":"the run was aborted: enough"}`}, subAgentChunks(t, g.log, "s", kidID))
			pairsOf(t, g.log, "s")
		})
	}
}

// The output fits the record of the run's end, but not one that holds the name
// of the call, too.
func TestClientsHearOfTheEndOfATurnWithALargeOutput(t *testing.T) {
	spawns := companionCall(strings.Repeat("i", eventlog.MaxID), "spawnAgent", `{"agent":"kid","name":"k","initialMessage":"go"}`)
	text := strings.Repeat("x", narrowRecord-400)
	g := newRigOn(t, narrow{memory.New()}, family(agentloop.NonBlocking, script(scripted.Turn{Text: text}), spawns)...)
	g.start("s", "boss", "go")
	state := g.comes("s", kidOver(1))
	require.Equal(t, `"`+text+`"`, string(state.Get(kidID).Output))
	told := subAgentChunks(t, g.log, "s", kidID)
	require.Len(t, told, 2)
	require.Contains(t, told[1], "too large")
}
