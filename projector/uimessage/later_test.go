package uimessage_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/uimessage"
)

// factsOf returns facts about a session as entries.
func factsOf(t *testing.T, session string, facts ...fact.Fact) (entries []eventlog.Entry) {
	t.Helper()
	for _, f := range facts {
		e, err := eventlog.NewFact(session, f, eventlog.Labels{Run: "r"})
		require.NoError(t, err)
		entries = append(entries, e)
	}
	return entries
}

func chunkOf(t *testing.T, c eventlog.Chunk, call string) eventlog.Entry {
	t.Helper()
	e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "r", Call: call})
	require.NoError(t, err)
	return e
}

// asking is the beginning of a session whose model has asked for some calls.
func asking(t *testing.T, session string, child *fact.SubSession, calls ...string) []eventlog.Entry {
	t.Helper()
	st, about := "st1", fact.Base{SessionID: session, Timestamp: 1}
	var parts []fact.TurnPart
	for _, id := range calls {
		parts = append(parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: id, Name: "t", Arguments: json.RawMessage(`{}`)}})
	}
	begin := factsOf(t, session,
		&fact.SessionCreated{AgentType: "a", Child: child, Base: about}, &fact.UserMessage{Content: "go", Base: about},
		&fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: about})
	turn := factsOf(t, session, &fact.ModelTurn{
		RunID: "r", StepID: st, Step: 1, Parts: parts, StopReason: fact.StopToolUse, Base: about,
	})
	return slices.Concat(begin, []eventlog.Entry{chunkOf(t, &eventlog.StepStart{StepID: &st, Base: of(session)}, "")}, turn)
}

// interrupted folds a conversation whose calls c1 and c2 run again after a further user
// message, which came when a run was interrupted, and then some more records.
func interrupted(t *testing.T, more ...eventlog.Entry) *projector.Tree {
	t.Helper()
	about := fact.Base{SessionID: "s", Timestamp: 1}
	entries := append(asking(t, "s", nil, "c1", "c2"), factsOf(t, "s",
		&fact.RunEnded{RunID: "r", Status: fact.RunStopped, Base: about},
		&fact.UserMessage{Content: "and more", Base: about}, &fact.RunRequested{RunID: "r2", Mode: fact.ModeContinue, Base: about},
	)...)
	tree := new(projector.Tree)
	for i, e := range append(entries, more...) {
		projector.Apply(tree, eventlog.Record{Sequence: uint64(i + 1), Entry: e})
	}
	require.Empty(t, tree.Parked)
	return tree
}

func resultOf(t *testing.T, call string) eventlog.Entry {
	t.Helper()
	return factsOf(t, "s", &fact.ToolResult{
		RunID: "r2", StepID: "st1", ToolCallID: call, ToolName: "t", Result: json.RawMessage(`1`),
		Base: fact.Base{SessionID: "s", Timestamp: 1},
	})[0]
}

// A client that reads the conversation finds a data part in the message to which the stream
// added it, also when the result of the call is placed before that message.
func TestADataPartStaysInItsMessage(t *testing.T) {
	event := chunkOf(t, &eventlog.CustomEvent{EventName: "progress", Data: json.RawMessage(`{"n":1}`), Base: base()}, "c1")
	for _, tree := range []*projector.Tree{interrupted(t, event), interrupted(t, event, resultOf(t, "c1"))} {
		messages := uimessage.Render(tree, nil)
		require.Len(t, messages, 4)
		require.Len(t, messages[1].Parts, 3, "the step and the calls")
		require.Equal(t, []uimessage.Part{uimessage.Data{Type: "data-progress", Data: json.RawMessage(`{"n":1}`)}}, messages[3].Parts)
	}
}

// A client that comes back receives the question of a sub-agent that was asked after the
// last user message.
func TestAQuestionStaysAfterTheUserMessage(t *testing.T) {
	child := "s-sub-c2"
	asked := append(
		asking(t, child, &fact.SubSession{ParentSessionID: "s", CallID: "c2", Mode: fact.SubSessionEphemeral}, "q"),
		factsOf(t, child, &fact.CallSuspended{
			RunID: "r", StepID: "st1", ToolCallID: "q", ToolName: "t", Kind: fact.PendingApproval, ApprovalID: "r::q",
			Base: fact.Base{SessionID: child, Timestamp: 1},
		})...)
	tree := interrupted(t, append(asked, resultOf(t, "c1"))...)
	require.Equal(t, map[string]bool{"c1": true, "c2": true}, uimessage.Earlier(tree))
}

// A record makes the same parts for a client that saw an execution of a call, which is
// truncated, and for one that comes later.
func TestATruncatedExecutionIsShownAgain(t *testing.T) {
	about := fact.Base{SessionID: "s", Timestamp: 1}
	start := chunkOf(t, &eventlog.ToolStart{ToolCallID: "c", ToolName: "t", Arguments: json.RawMessage(`{}`), Base: base()}, "c")
	failed := chunkOf(t, &eventlog.ToolOutputError{ToolCallID: "c", ToolName: "t", Error: "no", Base: base()}, "c")
	ended := chunkOf(t, &eventlog.ToolEnd{ToolCallID: "c", ToolName: "t", Result: json.RawMessage(`1`), Base: base()}, "c")
	input := chunkOf(t, &eventlog.ToolArgStreamStart{ToolCallID: "c", ToolName: "t", Base: base()}, "")
	step := chunkOf(t, &eventlog.StepStart{Base: base()}, "")
	for name, test := range map[string]struct {
		kept, truncated, again []eventlog.Entry
		call, want             string
	}{
		"a failure": {
			[]eventlog.Entry{step, input}, []eventlog.Entry{start, failed}, []eventlog.Entry{start, ended}, "c",
			`{"type":"tool-input-available","toolCallId":"c","toolName":"t","providerExecuted":true,"input":{}},` +
				`{"type":"tool-output-available","toolCallId":"c","providerExecuted":true,"output":1}`,
		},
		"a step": {
			nil, []eventlog.Entry{step, input}, []eventlog.Entry{step, input}, "",
			`{"type":"start-step"},{"type":"tool-input-start","toolCallId":"c","toolName":"t"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := uint64(len(test.kept)+1), uint64(len(test.kept)+len(test.truncated))
			marker := factsOf(t, "s", &eventlog.Truncated{
				Reason: eventlog.ResyncCrashRecovery, AtSequence: to, Base: about,
				Ranges: []eventlog.Range{{AgentID: "s", CallID: test.call, From: from, To: to}},
			})
			live, later := uimessage.NewEncoder(uimessage.EncoderOptions{Root: "s"}), uimessage.NewEncoder(uimessage.EncoderOptions{Root: "s"})
			var got, fresh []string
			for i, e := range slices.Concat(test.kept, test.truncated, marker, test.again) {
				r := eventlog.Record{Sequence: uint64(i + 1), Entry: e}
				frames := live.Encode(r)
				if r.Sequence > to+1 {
					got = append(got, texts(frames)...)
				}
				if from <= r.Sequence && r.Sequence <= to {
					continue
				}
				if frames := later.Encode(r); r.Sequence > to+1 {
					fresh = append(fresh, texts(frames)...)
				}
			}
			require.JSONEq(t, "["+test.want+"]", "["+strings.Join(got, ",")+"]")
			require.Equal(t, got, fresh)
		})
	}
}

func texts(frames []uimessage.Frame) (all []string) {
	for _, f := range frames {
		all = append(all, string(f))
	}
	return all
}
