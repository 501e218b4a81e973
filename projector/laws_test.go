package projector_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

func encoded(t require.TestingT, v any) string {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return string(raw)
}

// restored is a state that was saved and loaded.
func restored(t *testing.T, s *projector.Tree) *projector.Tree {
	t.Helper()
	out := new(projector.Tree)
	require.NoError(t, json.Unmarshal([]byte(encoded(t, s)), out))
	return out
}

func TestTwoFoldsOfALogAreEqual(t *testing.T) {
	rnd := testkit.Random(t)
	for range testkit.Times(200) {
		log := randomLog(rnd, 120)
		require.Equal(t, encoded(t, projector.Fold(log...)), encoded(t, projector.Fold(log...)))
	}
}

func TestAnySplitFoldsToTheSameState(t *testing.T) {
	rnd := testkit.Random(t)
	for range testkit.Times(100) {
		log := randomLog(rnd, 120)
		want := encoded(t, projector.Fold(log...))
		pieces := new(projector.Tree)
		for i, r := range log {
			projector.Apply(pieces, r)
			if rnd.IntN(10) == 0 || i == len(log)/2 {
				pieces = restored(t, pieces)
			}
		}
		require.Equal(t, want, encoded(t, pieces))
		require.Equal(t, want, encoded(t, restored(t, pieces)))
	}
}

func TestDuplicatesChangeNothing(t *testing.T) {
	rnd := testkit.Random(t)
	for range testkit.Times(100) {
		log := randomLog(rnd, 120)
		doubled := new(projector.Tree)
		for i, r := range log {
			projector.Apply(doubled, r)
			before := encoded(t, doubled)
			projector.Apply(doubled, log[rnd.IntN(i+1)])
			require.Equal(t, before, encoded(t, doubled))
		}
	}
}

// TestAppendedAndStoredRecordsFoldAlike: a writer that folds its own records gets the state that a
// reader gets from the stored ones. A fold does not change its records, which other code
// reads as well.
func TestAppendedAndStoredRecordsFoldAlike(t *testing.T) {
	rnd := testkit.Random(t)
	for range testkit.Times(100) {
		appended := randomLog(rnd, 120)
		appended = append(appended, eventlog.Record{
			Sequence: appended[len(appended)-1].Sequence + 2, Entry: chunk(&eventlog.TextDelta{Delta: "a\xff\xe2\x82", Base: base("s")}, ""),
		})
		stored := slices.Clone(appended)
		for i := range stored {
			stored[i].Entry = stored[i].Encoded()
		}
		want := encoded(t, projector.Fold(stored...))
		require.Equal(t, want, encoded(t, projector.Fold(appended...)))
		for i, r := range appended {
			require.Equal(t, projector.Decode(stored[i]), projector.Decode(r))
		}
		require.Equal(t, want, encoded(t, projector.Fold(appended...)), "the second time")
	}
}

func TestAnUnusableRecordIsParkedAndTheFoldContinues(t *testing.T) {
	poison := []eventlog.Entry{
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "text_delta", Agent: "s"}, Payload: []byte(`{"type":"text_delta","delta":5}`)},
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "text_delta", Agent: "s"}, Payload: []byte{0xff, 0}},
		{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "tool_result", Agent: "s"}, Payload: []byte(`{"type":"tool_result","toolCallId":"nobody"}`)},
		{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "model_turn", Agent: "s"}, Payload: []byte(`[]`)},
		{Envelope: eventlog.Envelope{Kind: "alien", Type: "x"}, Payload: nil},
		chunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "remove", Path: "/not/there"}}, Base: base("s")}, ""),
	}
	harmless := []eventlog.Entry{
		{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "from_the_future", Agent: "s"}, Payload: []byte(`{"type":"from_the_future","x":1}`)},
		{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "from_the_future", Agent: "s"}, Payload: []byte(`{"type":"from_the_future","x":1}`)},
	}
	entries := append(append([]eventlog.Entry{}, poison...), harmless...)
	entries = append(entries, chunk(&eventlog.StatePatch{
		Patches: []eventlog.PatchOp{{Op: "add", Path: "/still", Value: json.RawMessage(`"here"`)}}, Base: base("s"),
	}, ""))
	state := projector.Fold(numbered(entries...)...)
	require.Len(t, state.Parked, len(poison))
	for i, p := range state.Parked {
		require.Equal(t, uint64(2*i+2), p.Sequence)
		require.NotEmpty(t, p.Reason)
	}
	require.JSONEq(t, `{"still":"here"}`, state.CustomState.String())
	require.EqualValues(t, 2*len(entries), state.Head)
}

// FuzzApply: whatever is in a log, the fold neither panics nor leaves a
// state that can't be saved.
func FuzzApply(f *testing.F) {
	for _, typ := range eventlog.ChunkTypes() {
		f.Add("chunk", typ, []byte(`{"type":"`+typ+`","agentId":"s","step":1,"stepId":"x","patches":[{"op":"add","path":"/a","value":1}]}`))
	}
	for _, typ := range eventlog.FactTypes() {
		f.Add("fact", typ, []byte(`{"type":"`+typ+`","runId":"r","stepId":"x","ranges":[{"from":1,"to":9}],"parts":[{"text":"x"}]}`))
	}
	for n := range 3 {
		f.Add("fact", "truncated", rollbackTo(projector.Fold(numbered(opening()[:n+1]...)...), 9).Payload)
	}
	f.Fuzz(func(t *testing.T, kind, typ string, payload []byte) {
		e := eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.Kind(kind), Type: typ, Agent: "s"}, Payload: payload}
		log := numbered(append(opening(), e, e, closing("s"))...)
		state := projector.Fold(log...)
		raw := encoded(t, state)
		again := new(projector.Tree)
		require.NoError(t, json.Unmarshal([]byte(raw), again))
		require.Equal(t, raw, encoded(t, again))
		require.Equal(t, log[len(log)-1].Sequence, state.Head)
	})
}

func base(agent string) eventlog.Base {
	return eventlog.Base{AgentID: agent, AgentType: "a", Timestamp: 5, Step: 1}
}

func factBase(agent string) fact.Base {
	return fact.Base{SessionID: agent, Timestamp: 5}
}

func chunk(c eventlog.Chunk, call string) eventlog.Entry {
	e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "r", Call: call})
	if err != nil {
		panic(err)
	}
	return e
}

func factOf(agent string, f fact.Fact) eventlog.Entry {
	e, err := eventlog.NewFact(agent, f, eventlog.Labels{Run: "r"})
	if err != nil {
		panic(err)
	}
	return e
}

// numbered gives entries sequences with gaps.
func numbered(entries ...eventlog.Entry) []eventlog.Record {
	out := make([]eventlog.Record, len(entries))
	for i, e := range entries {
		out[i] = eventlog.Record{Sequence: uint64(2*i + 2), Entry: e}
	}
	return out
}

func opening() []eventlog.Entry {
	return []eventlog.Entry{
		factOf("s", &fact.SessionCreated{AgentType: "a", Base: factBase("s")}),
		factOf("s", &fact.UserMessage{Content: "go", Base: factBase("s")}),
		factOf("s", &fact.RunRequested{RunID: "r", Mode: fact.ModeStart, Base: factBase("s")}),
	}
}

func closing(agent string) eventlog.Entry {
	return factOf(agent, &fact.StreamPaused{Base: factBase(agent)})
}

// randomLog mixes records that belong together with records that make no sense in their
// place.
func randomLog(rnd *rand.Rand, n int) []eventlog.Record {
	entries := opening()
	text := func() string { return string([]rune("aé<\u2028\"\\ 語")[rnd.IntN(8)]) }
	for range n {
		agent := []string{"s", "s", "s", "child"}[rnd.IntN(4)]
		step, call := fmt.Sprintf("st%d", rnd.IntN(3)), fmt.Sprintf("c%d", rnd.IntN(3))
		b := base(agent)
		switch rnd.IntN(18) {
		case 0:
			entries = append(entries, chunk(&eventlog.StepStart{StepID: &step, Base: b}, ""))
		case 1, 2, 3:
			entries = append(entries, chunk(&eventlog.TextDelta{Delta: text(), Base: b}, ""))
		case 4:
			entries = append(entries, chunk(&eventlog.Thinking{Content: text(), IsComplete: rnd.IntN(2) == 0, Base: b}, ""))
		case 5:
			entries = append(entries, chunk(&eventlog.ToolArgStreamDelta{ToolCallID: call, Delta: text(), Base: b}, ""))
		case 6:
			entries = append(entries, factOf(agent, &fact.ModelTurn{
				RunID: "r", StepID: step, Step: 1, StopReason: fact.StopToolUse, Base: factBase(agent),
				Parts: []fact.TurnPart{{Text: text()}, {ToolCall: &fact.ToolCall{ID: call, Name: "t", Arguments: json.RawMessage(`{}`)}}},
			}))
		case 7:
			entries = append(entries, chunk(&eventlog.CustomEvent{EventName: "e", Data: eventData(rnd), Base: b}, call))
		case 8:
			entries = append(entries, factOf(agent, &fact.ToolResult{
				RunID: "r", StepID: step, ToolCallID: call, ToolName: "t", Result: json.RawMessage(`{"x":1.0}`), Base: factBase(agent),
			}))
		case 9:
			op := eventlog.PatchOp{
				Op: []string{"add", "replace", "remove"}[rnd.IntN(3)], Path: []string{"/a", "/b", "/a/b", "/l/-", ""}[rnd.IntN(5)],
				Value: json.RawMessage([]string{`1e3`, `{"b":[]}`, `null`, `"<x>"`}[rnd.IntN(4)]),
			}
			entries = append(entries, chunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{op}, Base: b}, call))
		case 10:
			entries = append(entries,
				chunk(&eventlog.StepCommitted{RunID: "r", StepID: step, CheckpointID: "cp", Base: b}, ""),
				chunk(&eventlog.CheckpointCreated{RunID: "r", CheckpointID: "cp", StepCount: 1, Base: b}, ""))
		case 11:
			from := uint64(1 + rnd.IntN(2*len(entries)))
			entries = append(entries, factOf(agent, &eventlog.Truncated{
				Reason: eventlog.ResyncRetry, AtSequence: from, Base: factBase(agent),
				Ranges: []eventlog.Range{{AgentID: agent, CallID: []string{"", call}[rnd.IntN(2)], From: from, To: from + 40}},
			}))
		case 12:
			entries = append(entries, factOf(agent, &fact.RunRequested{
				RunID: fmt.Sprint("r", rnd.IntN(9)), Base: factBase(agent),
				Mode: []fact.RunMode{fact.ModeStart, fact.ModeContinue}[rnd.IntN(2)],
			}))
		case 13:
			entries = append(entries, factOf(agent, &fact.RunEnded{
				RunID: "r", Base: factBase(agent), Output: json.RawMessage(`"x"`),
				Status: []fact.RunStatus{fact.RunCompleted, fact.RunFailed, fact.RunStopped}[rnd.IntN(3)],
			}))
		case 14:
			entries = append(entries, factOf(agent, &fact.UserMessage{Content: text(), Base: factBase(agent), Metadata: json.RawMessage(`{"hidden":true}`)}))
		case 15:
			entries = append(entries, keyed(text()+"k", "d", 1+rnd.IntN(3))...)
		case 16:
			back := factOf("s", &eventlog.Truncated{
				Reason: eventlog.ResyncRollback, AfterSequence: uint64(1 + rnd.IntN(2*len(entries))), AtSequence: 1 << 20, Base: factBase("s"),
				Ranges: []eventlog.Range{}, Restore: json.RawMessage([]string{`{}`, `{"sequence":2,"sessions":{}}`}[rnd.IntN(2)]),
			})
			if n := 1 + rnd.IntN(len(entries)); rnd.IntN(4) > 0 {
				back = rollbackTo(projector.Fold(numbered(entries[:n]...)...), uint64(2*len(entries)))
			}
			entries = append(entries, back)
		default:
			entries = append(entries, eventlog.Entry{
				Envelope: eventlog.Envelope{Kind: eventlog.Kind([]string{"chunk", "fact", ""}[rnd.IntN(3)]), Type: "?", Agent: agent},
				Payload:  []byte([]string{`{`, `{"type":"?"}`, `null`, ``}[rnd.IntN(4)]),
			})
		}
	}
	return numbered(entries...)
}

// eventData is the data of a custom event, mostly of one that replaces another.
func eventData(rnd *rand.Rand) json.RawMessage {
	if rnd.IntN(4) == 0 {
		return json.RawMessage(`1`)
	}
	return json.RawMessage(fmt.Sprintf(`{"id":"e%d","n":%d}`, rnd.IntN(2), rnd.IntN(1000)))
}

func TestAPatchCantBlowUpTheState(t *testing.T) {
	ops := []eventlog.PatchOp{{Op: "add", Path: "/a", Value: json.RawMessage(`["` + fmt.Sprintf("%01000d", 7) + `"]`)}}
	from := "/a"
	for range 40 {
		ops = append(ops, eventlog.PatchOp{Op: "copy", From: &from, Path: "/a/-"})
	}
	state := projector.Fold(numbered(append(opening(), chunk(&eventlog.StatePatch{Patches: ops, Base: base("s")}, ""))...)...)
	require.Len(t, state.Parked, 1)
	require.JSONEq(t, `{}`, state.CustomState.String())

	_, _, err := projector.Patch(json.RawMessage(`{}`), []eventlog.PatchOp{{Op: "replace", Path: "", Value: json.RawMessage(`[1]`)}}, projector.MaxPatchWork)
	require.ErrorContains(t, err, "must stay an object")
}
