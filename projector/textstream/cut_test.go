package textstream_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector/uimessage"
)

// A client that shows a snapshot's content can't continue the blocks in it.
func TestBlocksAreOpenedAgainWhenTheyGoOn(t *testing.T) {
	text := func(s string) any { return &eventlog.TextDelta{Delta: s, Base: of(root)} }
	piece := &eventlog.Thinking{Content: "a", Base: of(root)}
	argStart := &eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "t", Base: of(root)}
	arg := &eventlog.ToolArgStreamDelta{ToolCallID: "c", Delta: "{", Base: of(root)}
	for _, test := range []struct {
		name   string
		seen   uint64
		chunks []any
		want   string
	}{
		{"text", 1, []any{text("1"), text("2"), text("3")}, `
			{"type":"text-start","id":"text-0"}
			{"type":"text-delta","id":"text-0","text":"2"}
			{"type":"text-delta","id":"text-0","text":"3"}
			END
			{"type":"text-end","id":"text-0"}`},
		{"not an unfinished one", 1, []any{text("1"), piece}, `
			{"type":"reasoning-start","id":"reasoning-0"}
			{"type":"reasoning-delta","id":"reasoning-0","text":"a"}
			END
			{"type":"reasoning-end","id":"reasoning-0"}`},
		{"nor is it ended", 1, []any{text("1")}, ``},
		{"the next block is the next one", 2, []any{text("1"), piece, text("2")}, `
			{"type":"text-start","id":"text-1"}
			{"type":"text-delta","id":"text-1","text":"2"}
			END
			{"type":"text-end","id":"text-1"}`},
		{"reasoning", 1, []any{piece, piece}, `
			{"type":"reasoning-start","id":"reasoning-0"}
			{"type":"reasoning-delta","id":"reasoning-0","text":"a"}
			END
			{"type":"reasoning-end","id":"reasoning-0"}`},
		{"reasoning that was only to be ended", 1, []any{piece, &eventlog.Thinking{Content: "a", IsComplete: true, Base: of(root)}}, ``},
		{"input", 1, []any{argStart, arg}, `
			{"type":"tool-input-start","id":"c","toolName":"t"}
			{"type":"tool-input-delta","id":"c","delta":"{"}
			END
			{"type":"tool-input-end","id":"c"}`},
		{"input that was only to be ended", 2, []any{argStart, arg, &eventlog.ToolArgStreamEnd{ToolCallID: "c", Base: of(root)}}, ``},
		{"a result that was sent is not sent again", 1, []any{
			&eventlog.ToolOutputError{ToolCallID: "c", ToolName: "t", Error: "no", Base: of(root)},
			&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw("null"), Error: new("no"), Base: of(root)},
		}, ``},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, script(test.want), told(t, test.seen, test.chunks...))
		})
	}
}

// Each start-step has its finish-step, also if the run ends in the step.
func TestStepsAreFinishedOnce(t *testing.T) {
	step := &eventlog.StepStart{Base: of(root)}
	end := &eventlog.StepEnd{Base: of(root)}
	ended := &fact.RunEnded{RunID: "r", Status: fact.RunClientTool}
	next := &fact.RunRequested{RunID: "r2", Mode: fact.ModeContinue}
	claimed := &fact.RunClaimed{RunID: "r", Node: "n", Attempt: 2}
	const start, finish = `{"type":"start-step"}`, `{"type":"finish-step"}`
	whole := start + "\n" + finish

	require.Equal(t, whole, told(t, 0, step, end))
	require.Equal(t, whole, told(t, 0, step, ended), "the run has ended in it")
	require.Equal(t, whole, told(t, 0, step, ended, next, end), "the next run ends it")
	require.Equal(t, whole, told(t, 0, step, ended, claimed, end), "the run was claimed again to be aborted")
	require.Equal(t, whole, told(t, 0, step, next, claimed, end), "the run before has died, and the step continues")
	require.Equal(t, whole+"\n"+start+"\nEND\n"+finish, told(t, 0, step, ended, next, step, next), "the same in a second run")
	require.Equal(t, whole, told(t, 0, step, ended, about(t, child, &fact.RunRequested{RunID: "c", Mode: fact.ModeStart})),
		"that was a sub-agent's run")
	require.Equal(t, whole+"\n"+start+"\nEND\n"+finish, told(t, 0, step, step), "one that broke off")
}

// A sub-agent that outlives its root's response continues with a block of the
// next one.
func TestNoBlockContinuesInTheNextResponse(t *testing.T) {
	text := &eventlog.TextDelta{Delta: "x", Base: of(child)}
	ended := &fact.RunEnded{RunID: "r", Status: fact.RunClientTool}
	require.Equal(t, script(`
		{"type":"text-start","id":"s-sub-a-text-0","metadata":{"parentToolUseId":"s-sub-a"}}
		{"type":"text-delta","id":"s-sub-a-text-0","text":"x","metadata":{"parentToolUseId":"s-sub-a"}}
		{"type":"text-end","id":"s-sub-a-text-0","metadata":{"parentToolUseId":"s-sub-a"}}
		{"type":"text-start","id":"s-sub-a-text-1","metadata":{"parentToolUseId":"s-sub-a"}}
		{"type":"text-delta","id":"s-sub-a-text-1","text":"x","metadata":{"parentToolUseId":"s-sub-a"}}
		END
		{"type":"text-end","id":"s-sub-a-text-1","metadata":{"parentToolUseId":"s-sub-a"}}`), told(t, 0, text, ended, text))
}

// What a failed attempt had said is truncated while the client listens. What comes
// then has its own names, also to clients that come later and never saw it.
func TestTruncation(t *testing.T) {
	text := func(s string) any { return &eventlog.TextDelta{Delta: s, Base: of(root)} }
	truncated := []any{
		text("kept"), &eventlog.Thinking{Content: "hm", Base: of(root)}, text("half"),
		&eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "t", Base: of(root)},
		&eventlog.TextDelta{Delta: "hers", Base: of(child)},
	}
	marker := &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, AtSequence: 5, Ranges: []eventlog.Range{{AgentID: root, From: 2, To: 4}},
	}
	all := records(t, append(truncated, marker, text("whole"), &eventlog.TextDelta{Delta: "too", Base: of(child)})...)

	e := newEncoder()
	encoded(e, all[:5], 0)
	const tail = `
		{"type":"text-start","id":"text-6"}
		{"type":"text-delta","id":"text-6","text":"whole"}`
	require.Equal(t, script(`
		{"type":"tool-input-end","id":"c"}`+tail+`
		{"type":"text-delta","id":"s-sub-a-text-0","text":"too","metadata":{"parentToolUseId":"s-sub-a"}}`),
		join(lines(encoded(e, all[5:], 0))), "the sub-agent's text continues")

	e = newEncoder()
	effective := append([]eventlog.Record{all[0]}, all[4:]...)
	encoded(e, effective[:3], 6)
	require.Equal(t, script(tail), join(lines(encoded(e, effective[3:4], 0))), "one that comes later")
}

// A record makes the same frames for a client that saw the first execution of a call, which is
// truncated, and for one that comes later.
func TestATruncatedCallIsShownAgain(t *testing.T) {
	about := of(root)
	labeled := func(c eventlog.Chunk) any {
		e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "r", Call: "c"})
		require.NoError(t, err)
		return eventlog.Record{Entry: e}
	}
	turn := &fact.ModelTurn{
		RunID: "r", StepID: "st", Step: 1, StopReason: fact.StopToolUse,
		Parts: []fact.TurnPart{{ToolCall: &fact.ToolCall{ID: "c", Name: "t", Arguments: raw(`{"a":1}`)}}},
	}
	start := labeled(&eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Arguments: raw(`{"a":1}`), Base: about})
	failed := labeled(&eventlog.ToolOutputError{ToolCallID: "c", ToolName: "t", Error: "no", Base: about})
	ended := labeled(&eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: raw(`1`), Base: about})
	marker := &eventlog.Truncated{
		Reason: eventlog.ResyncCrashRecovery, AtSequence: 4, Ranges: []eventlog.Range{{AgentID: root, CallID: "c", From: 3, To: 4}},
	}
	const (
		call   = `{"type":"tool-call","toolCallId":"c","toolName":"t","input":{"a":1}}`
		result = `{"type":"tool-result","toolCallId":"c","toolName":"t","output":1}`
	)
	for name, again := range map[string][]any{"it starts again": {start, ended}, "it is finished without a start": {ended}} {
		t.Run(name, func(t *testing.T) {
			all := records(t, append([]any{&eventlog.StepStart{Base: about}, turn, start, failed, marker}, again...)...)
			live, later := newEncoder(), newEncoder()
			encoded(live, all[:5], 0)
			encoded(later, slices.Delete(slices.Clone(all[:5]), 2, 4), 5)
			tail := lines(encoded(live, all[5:], 0))
			require.Equal(t, []string{call, result}, tail)
			require.Equal(t, tail, lines(encoded(later, all[5:], 0)))
		})
	}
}

// A step that is truncated is finished with the marker: the one that begins again makes the
// same frames for clients that never saw the first.
func TestATruncatedStepIsFinished(t *testing.T) {
	step := &eventlog.StepStart{Base: of(root)}
	marker := &eventlog.Truncated{
		Reason: eventlog.ResyncRetry, AtSequence: 1, Ranges: []eventlog.Range{{AgentID: root, From: 1, To: 1}},
	}
	all := records(t, step, marker, step)
	live, later := newEncoder(), newEncoder()
	require.Equal(t, []string{`{"type":"start-step"}`, `{"type":"finish-step"}`}, lines(encoded(live, all[:2], 0)))
	encoded(later, all[1:2], 2)
	want := []string{`{"type":"start-step"}`}
	require.Equal(t, want, lines(encoded(live, all[2:], 0)))
	require.Equal(t, want, lines(encoded(later, all[2:], 0)))
}

func TestWhatCannotBeReadIsLeftOut(t *testing.T) {
	for _, kind := range []eventlog.Kind{eventlog.KindChunk, eventlog.KindFact, "newer"} {
		for _, payload := range []string{``, `{`, `{"type":"text_delta","delta":5}`, `{"type":"newest"}`} {
			r := eventlog.Record{Sequence: 1, Entry: eventlog.Entry{
				Envelope: eventlog.Envelope{Kind: kind, Type: "text_delta", Agent: root}, Payload: []byte(payload),
			}}
			require.Empty(t, newEncoder().Encode(r))
		}
	}
	require.Len(t, newEncoder().End(uimessage.Ending{}), 1)
}
