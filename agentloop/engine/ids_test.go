package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Whoever approves a call names it by its id in the tree.
func TestSubAgentsThatAnswerTogetherGetDistinctCallIDs(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	kid := modelFunc(func(_ context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
		if err := emit(model.ToolCallStart{ID: "call_0", Name: "delete"}); err != nil {
			return model.Answer{}, err
		}
		both.Done()
		both.Wait() // neither answer is recorded yet
		return model.Answer{StopReason: fact.StopToolUse}, emit(model.ToolCallDelta{Text: fmt.Sprintf(`{"what":%q}`, req.Messages[0].Content)})
	})
	g := newRig(t,
		agentloop.Agent{Name: "boss", SubAgents: []agentloop.SubAgent{{Agent: "kid"}}, Model: script(scripted.Turn{ToolCalls: []scripted.Call{
			{ID: "a", Name: "subagent__kid", Arguments: json.RawMessage(`{"message":"a draft"}`)},
			{ID: "b", Name: "subagent__kid", Arguments: json.RawMessage(`{"message":"everything"}`)},
		}})},
		agentloop.Agent{Name: "kid", Model: kid, OutputSchema: json.RawMessage(`{"type":"object"}`), Tools: []agentloop.Tool{{
			Name: "delete", RequireApproval: agentloop.AlwaysApprove,
			Execute: func(context.Context, *agentloop.Call, json.RawMessage) (any, error) { return nil, nil },
		}}})
	g.start("s", "boss", "go")
	released(t, g.loop)
	ids := map[string]string{}
	for _, a := range stateOf(t, g.log, "s").AwaitedCalls() {
		ids[a.Call.ID] = string(a.Call.Arguments)
	}
	require.Len(t, ids, 2)
	require.Contains(t, ids, "call_0")
	require.Contains(t, ids, "call_0-2")
}

func TestALongCallIDThatIsRepeatedStaysValid(t *testing.T) {
	for name, id := range map[string]string{
		"letters":    strings.Repeat("x", eventlog.MaxID),
		"characters": strings.Repeat("é", eventlog.MaxID/2), // the cut is within one
	} {
		t.Run(name, func(t *testing.T) {
			again := scripted.Turn{ToolCalls: []scripted.Call{{ID: id, Name: "add", Arguments: json.RawMessage(`{"by":1}`)}}}
			g := newRig(t, agentloop.Agent{
				Name: "a", Tools: []agentloop.Tool{addTool()}, Model: script(again, again, again, scripted.Turn{Text: "three"}),
			})
			g.start("s", "a", "go")
			state := g.ended("s")
			require.Equal(t, projector.SessionCompleted, state.Status)
			require.JSONEq(t, `{"count":3}`, state.CustomState.String())
			ids := map[string]bool{}
			for _, m := range state.Messages {
				if m.Role == projector.RoleTool {
					require.NoError(t, eventlog.ValidateID(m.ToolCallID))
					ids[m.ToolCallID] = true
				}
			}
			require.Len(t, ids, 3)
		})
	}
}
