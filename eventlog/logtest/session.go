package logtest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// LongSession returns the records of a long session as an agent loop writes
// them, the same each time: turns of reasoning, two tool calls and an answer,
// each streamed word by word, with results of some hundred bytes, patches of the
// custom state and checkpoints. A turn has about 200 records.
func LongSession(session string, records int) []eventlog.Entry {
	w := &longSession{session: session, now: 1_700_000_000_000}
	w.fact(&fact.SessionCreated{AgentType: "assistant", UserID: "user", Base: w.factBase()})
	for turn := 1; len(w.entries) < records; turn++ {
		w.turn(turn)
	}
	return w.entries[:records]
}

type longSession struct {
	session, run, call string
	step               int
	now                int64
	entries            []eventlog.Entry
}

func (w *longSession) put(e eventlog.Entry, err error) {
	if err != nil {
		panic(err)
	}
	w.now += 40
	w.entries = append(w.entries, e)
}

func (w *longSession) fact(f fact.Fact) {
	w.put(eventlog.NewFact(w.session, f, eventlog.Labels{Run: w.run, Call: w.call}))
}

func (w *longSession) chunk(c eventlog.Chunk) {
	w.put(eventlog.NewChunk(c, eventlog.Labels{Run: w.run, Call: w.call}))
}

func (w *longSession) factBase() fact.Base {
	return fact.Base{SessionID: w.session, Timestamp: w.now}
}

func (w *longSession) base() eventlog.Base {
	return eventlog.Base{AgentID: w.session, AgentType: "assistant", Timestamp: w.now, Step: w.step}
}

// words streams n words and returns them.
func (w *longSession) words(n, seed int, delta func(string) eventlog.Chunk) string {
	const lexicon = "the order was shipped on Monday and the customer asks whether a refund of that item can still be made before it arrives"
	all := strings.Fields(lexicon)
	var text strings.Builder
	for i := range n {
		word := all[(i*7+seed)%len(all)] + " "
		text.WriteString(word)
		w.chunk(delta(word))
	}
	return text.String()
}

func (w *longSession) turn(n int) {
	w.run, w.step = "", 0
	w.fact(&fact.UserMessage{Content: fmt.Sprintf("Question %d: what has become of my order, and when is it here?", n), Base: w.factBase()})
	w.run = fmt.Sprintf("run-%d", n)
	w.fact(&fact.RunRequested{RunID: w.run, Mode: fact.ModeStart, Base: w.factBase()})
	w.fact(&fact.RunClaimed{RunID: w.run, Node: "node-1", Attempt: 1, Base: w.factBase()})

	w.step = 1
	id := fmt.Sprintf("turn-%d-step-1", n)
	w.chunk(&eventlog.StepStart{StepID: &id, Base: w.base()})
	parts := []fact.TurnPart{
		{Reasoning: w.words(30, n, func(s string) eventlog.Chunk { return &eventlog.Thinking{Content: s, Base: w.base()} })},
		{Text: w.words(15, n+3, func(s string) eventlog.Chunk { return &eventlog.TextDelta{Delta: s, Base: w.base()} })},
	}
	for i, tool := range []string{"find_order", "track_parcel"} {
		call := &fact.ToolCall{ID: fmt.Sprintf("call-%d-%d", n, i), Name: tool, Arguments: json.RawMessage(fmt.Sprintf(`{"order":%d,"all":true}`, n))}
		w.chunk(&eventlog.ToolArgStreamStart{ToolCallID: call.ID, ToolName: tool, Base: w.base()})
		for piece := range strings.SplitSeq(string(call.Arguments), ",") {
			w.chunk(&eventlog.ToolArgStreamDelta{ToolCallID: call.ID, Delta: piece, Base: w.base()})
		}
		w.chunk(&eventlog.ToolArgStreamEnd{ToolCallID: call.ID, Base: w.base()})
		parts = append(parts, fact.TurnPart{ToolCall: call})
	}
	w.fact(&fact.ModelTurn{
		RunID: w.run, StepID: id, Step: 1, Model: "model", Parts: parts, StopReason: fact.StopToolUse,
		Usage: fact.TokenUsage{Prompt: 900, Completion: 90, Total: 990}, Base: w.factBase(),
	})
	for i, p := range parts[2:] {
		w.call = p.ToolCall.ID
		w.chunk(&eventlog.ToolStart{ToolCallID: w.call, ToolName: p.ToolCall.Name, Arguments: p.ToolCall.Arguments, Base: w.base()})
		w.chunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{{
			Op: "add", Path: fmt.Sprintf("/seen%d", n%20), Value: json.RawMessage(fmt.Sprint(n)),
		}}, Base: w.base()})
		result := json.RawMessage(fmt.Sprintf(`{"order":%d,"lines":[%s{"sku":"end"}]}`, n,
			strings.Repeat(`{"sku":"A-1001","name":"A kettle of steel","pieces":1,"price":49.9},`, 6+4*i)))
		w.fact(&fact.ToolResult{RunID: w.run, StepID: id, ToolCallID: w.call, ToolName: p.ToolCall.Name, Result: result, Base: w.factBase()})
		w.chunk(&eventlog.ToolEnd{ToolCallID: w.call, ToolName: p.ToolCall.Name, Result: result, Base: w.base()})
		w.call = ""
	}
	w.commit(n, id)

	w.step = 2
	id = fmt.Sprintf("turn-%d-step-2", n)
	w.chunk(&eventlog.StepStart{StepID: &id, Base: w.base()})
	text := w.words(120, n+5, func(s string) eventlog.Chunk { return &eventlog.TextDelta{Delta: s, Base: w.base()} })
	w.fact(&fact.ModelTurn{
		RunID: w.run, StepID: id, Step: 2, Model: "model", Parts: []fact.TurnPart{{Text: text}}, StopReason: fact.StopEndTurn,
		Usage: fact.TokenUsage{Prompt: 1500, Completion: 160, Total: 1660}, Base: w.factBase(),
	})
	w.commit(n, id)
	w.fact(&fact.RunEnded{RunID: w.run, Status: fact.RunCompleted, Output: json.RawMessage(`"done"`), Base: w.factBase()})
	w.fact(&fact.StreamEnd{StreamID: w.session, Timestamp: w.now})
}

func (w *longSession) commit(n int, id string) {
	checkpoint := fmt.Sprintf("cpv1-%s-%d-%d", w.session, n, w.step)
	w.chunk(&eventlog.StepEnd{StepID: &id, Base: w.base()})
	w.chunk(&eventlog.StepCommitted{RunID: w.run, StepID: id, CheckpointID: checkpoint, Base: w.base()})
	w.chunk(&eventlog.CheckpointCreated{RunID: w.run, CheckpointID: checkpoint, StepCount: w.step, Base: w.base()})
}
