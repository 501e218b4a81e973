package textstream_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// What a sub-agent does is sent as the root's is, marked with the call that
// began it; one of its own sub-agents is marked with its call.
func TestSubAgentsAreMarkedWithTheirCalls(t *testing.T) {
	const grandchild = child + "-sub-g"
	say := func(agent, text string) any { return &eventlog.TextDelta{Delta: text, Base: of(agent)} }
	require.Equal(t, script(`
		{"type":"start-step"}
		{"type":"text-start","id":"s-sub-a-text-0","metadata":{"parentToolUseId":"a"}}
		{"type":"text-delta","id":"s-sub-a-text-0","text":"1","metadata":{"parentToolUseId":"a"}}
		{"type":"text-start","id":"text-0"}
		{"type":"text-delta","id":"text-0","text":"2"}
		{"type":"text-start","id":"s-sub-a-sub-g-text-0","metadata":{"parentToolUseId":"g"}}
		{"type":"text-delta","id":"s-sub-a-sub-g-text-0","text":"3","metadata":{"parentToolUseId":"g"}}
		{"type":"text-delta","id":"s-sub-a-text-0","text":"4","metadata":{"parentToolUseId":"a"}}
		{"type":"text-end","id":"s-sub-a-text-0","metadata":{"parentToolUseId":"a"}}
		{"type":"reasoning-start","id":"s-sub-a-reasoning-0","metadata":{"parentToolUseId":"a"}}
		{"type":"reasoning-delta","id":"s-sub-a-reasoning-0","text":"5","metadata":{"parentToolUseId":"a"}}
		{"type":"reasoning-end","id":"s-sub-a-reasoning-0","metadata":{"parentToolUseId":"a"}}
		{"type":"tool-input-start","id":"c","toolName":"t","metadata":{"parentToolUseId":"a"}}
		{"type":"tool-input-delta","id":"c","delta":"{}","metadata":{"parentToolUseId":"a"}}
		{"type":"tool-input-end","id":"c","metadata":{"parentToolUseId":"a"}}
		{"type":"tool-call","toolCallId":"c","toolName":"t","input":{},"metadata":{"parentToolUseId":"a"}}
		{"type":"tool-result","toolCallId":"c","toolName":"t","output":6,"metadata":{"parentToolUseId":"a"}}
		END
		{"type":"text-end","id":"text-0"}
		{"type":"text-end","id":"s-sub-a-sub-g-text-0","metadata":{"parentToolUseId":"g"}}
		{"type":"finish-step"}`),
		told(t, 0,
			&eventlog.StepStart{Base: of(root)},
			about(t, child, &fact.SessionCreated{AgentType: "h", Child: &fact.SubSession{
				ParentSessionID: root, CallID: "a", Mode: fact.SubSessionEphemeral,
			}}),
			&eventlog.StepStart{Base: of(child)},
			say(child, "1"), say(root, "2"),
			&eventlog.SubAgentStart{SubAgentType: "g", SubSessionID: grandchild, CallID: "g", Base: of(child)},
			say(grandchild, "3"), say(child, "4"),
			&eventlog.Thinking{Content: "5", Base: of(child)},
			&eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "t", Base: of(child)},
			&eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: "{}", Base: of(child)},
			&eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Arguments: raw("{}"), Base: of(child)},
			&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw("6"), Base: of(child)},
			&eventlog.StepEnd{Base: of(child)},
		))
}

// A persistent sub-agent's session may have begun in an earlier message.
func TestASubAgentOfAnEarlierMessageIsNotTakenForTheRoot(t *testing.T) {
	const coder = "s-agent-coder"
	text := &eventlog.TextDelta{Delta: "x", Base: of(coder)}
	waits := &fact.CallSuspended{
		RunID: "r", StepID: "1", ToolCallID: "send", ToolName: "companion__sendMessage", Kind: fact.PendingChild, ChildSessionID: coder,
	}
	require.Contains(t, told(t, 0, waits, text), `{"parentToolUseId":"send"}`, "the call waits for it")
	require.Contains(t, told(t, 0, &eventlog.SubAgentStart{SubAgentType: "h", SubSessionID: coder, CallID: "spawn", Base: of(root)}, waits, text),
		`{"parentToolUseId":"spawn"}`, "it is of this message")
	require.Contains(t, told(t, 0, text), `{"parentToolUseId":"s-agent-coder"}`, "nobody does")
}

func TestASubAgentsTextEndsWithItsRun(t *testing.T) {
	text := &eventlog.TextDelta{Delta: "x", Base: of(child)}
	require.Contains(t, told(t, 0, text, about(t, child, &fact.RunEnded{RunID: "r", Status: fact.RunStopped}), text),
		`"s-sub-a-text-1"`)
}
