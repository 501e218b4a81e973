package sqlite

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// history generates random records of a session tree: complete turns, and records that
// make no sense in their place.
type history struct {
	rnd   *rand.Rand
	root  string
	tree  *projector.Tree   // as the log has it
	past  []*projector.Tree // possible targets of a rollback
	calls int
}

var histories = []string{"red", "blue"}

// next returns the next records.
func (h *history) next(head uint64) []eventlog.Entry {
	if head == 0 {
		if h.rnd.IntN(8) == 0 {
			return []eventlog.Entry{h.poison()}
		}
		return []eventlog.Entry{created(h.root, histories[h.rnd.IntN(2)], fmt.Sprint("user", h.rnd.IntN(3)), "t", fmt.Sprint("t", h.rnd.IntN(3)))}
	}
	session := h.root
	if h.rnd.IntN(4) == 0 {
		session = h.root + "-child"
	}
	switch n := h.rnd.IntN(12); {
	case n < 5:
		return h.turn(session)
	case n == 5:
		return []eventlog.Entry{said(session, h.text())}
	case n == 6:
		return []eventlog.Entry{h.poison()}
	case n == 7:
		return []eventlog.Entry{factOf(h.root+"-child", "", &fact.SessionCreated{
			AgentType: "helper", Child: &fact.SubSession{ParentSessionID: h.root, CallID: "c", Mode: "ephemeral"},
			Base: factAt(h.root+"-child", 4),
		})}
	case n == 8:
		at := 1 + uint64(h.rnd.IntN(int(head)))
		return []eventlog.Entry{factOf(session, "", &eventlog.Truncated{
			Reason: eventlog.ResyncRetry, AtSequence: at, Base: factAt(session, 5),
			Ranges: []eventlog.Range{{AgentID: session, From: at, To: at + uint64(h.rnd.IntN(30))}},
		})}
	case n == 9 && len(h.past) > 0:
		return []eventlog.Entry{h.rollback(h.past[h.rnd.IntN(len(h.past))], head)}
	case n == 10:
		return []eventlog.Entry{factOf(session, "", &fact.UserMessage{
			Content: "for the model only", Metadata: json.RawMessage(`{"hidden":true}`), Base: factAt(session, 6),
		})}
	default:
		return []eventlog.Entry{chunk("somebody", "", "", &eventlog.TextDelta{Delta: h.text(), Base: h.base("somebody")})}
	}
}

func (h *history) text() string {
	words := []string{"alpha", "Béta", "gamma", "\"quoted\"", "語", "<b>", "\x00", "delta"}
	text := ""
	for range 1 + h.rnd.IntN(4) {
		text += words[h.rnd.IntN(len(words))] + " "
	}
	return text
}

func (h *history) base(session string) eventlog.Base {
	return eventlog.Base{AgentID: session, AgentType: "red", Timestamp: 1 + h.rnd.Int64N(1<<41), Step: 1}
}

// turn is a run with a model's answer and calls, or the beginning of one.
func (h *history) turn(session string) []eventlog.Entry {
	h.calls++
	run, step := fmt.Sprint("run-", h.calls), fmt.Sprint("step-", h.calls)
	at := func() fact.Base { return factAt(session, 1+h.rnd.Int64N(1<<41)) }
	entries := []eventlog.Entry{
		said(session, h.text()),
		factOf(session, run, &fact.RunRequested{RunID: run, Mode: fact.ModeStart, Base: at()}),
		chunk(session, run, "", &eventlog.StepStart{StepID: &step, Base: h.base(session)}),
		chunk(session, run, "", &eventlog.TextDelta{Delta: h.text(), Base: h.base(session)}),
	}
	turn := &fact.ModelTurn{
		RunID: run, StepID: step, Step: 1, StopReason: fact.StopToolUse, Base: at(),
		Model: []string{"", "small", "large"}[h.rnd.IntN(3)], Parts: []fact.TurnPart{{Text: h.text()}},
		Usage: fact.TokenUsage{Prompt: h.rnd.Int64N(99), Completion: h.rnd.Int64N(99), Total: 100},
	}
	for i := range h.rnd.IntN(4) {
		turn.Parts = append(turn.Parts, fact.TurnPart{ToolCall: &fact.ToolCall{
			ID: fmt.Sprint("call-", h.calls, "-", i), Name: "look", Arguments: json.RawMessage(fmt.Sprintf(`{"for":%q}`, "omega")),
		}})
	}
	entries = append(entries, factOf(session, run, turn))
	for _, i := range h.rnd.Perm(len(turn.Parts) - 1) {
		result := &fact.ToolResult{
			RunID: run, StepID: step, ToolCallID: fmt.Sprint("call-", h.calls, "-", i), ToolName: "look", Base: at(),
			Result: json.RawMessage(`"seen ☂"`),
		}
		if h.rnd.IntN(3) == 0 {
			result.Result, result.Error = nil, "it broke"
		}
		entries = append(entries, factOf(session, run, result))
	}
	entries = append(entries,
		chunk(session, run, "", &eventlog.StepCommitted{RunID: run, StepID: step, CheckpointID: "cp-" + step, Base: h.base(session)}),
		factOf(session, run, &fact.RunEnded{RunID: run, Status: fact.RunCompleted, Output: json.RawMessage(`"x"`), Base: at()}))
	return entries[:1+h.rnd.IntN(len(entries))]
}

func (h *history) rollback(to *projector.Tree, head uint64) eventlog.Entry {
	restore, err := projector.RestoreAt(to)
	if err != nil {
		panic(err)
	}
	f := &eventlog.Truncated{
		Reason: eventlog.ResyncRollback, AfterSequence: to.Head, AtSequence: head, Restore: restore, Base: factAt(h.root, 7),
		Ranges: []eventlog.Range{},
	}
	for _, s := range h.tree.Sessions() {
		if to.Head < head {
			f.Ranges = append(f.Ranges, eventlog.Range{AgentID: s.SessionID, From: to.Head + 1, To: head, Scope: eventlog.ScopeAll})
		}
	}
	return factOf(h.root, "", f)
}

func (h *history) poison() eventlog.Entry {
	return eventlog.Entry{
		Envelope: eventlog.Envelope{Kind: eventlog.Kind([]string{"chunk", "fact", ""}[h.rnd.IntN(3)]), Type: "?", Agent: h.root},
		Payload:  []byte([]string{`{`, `{"type":"?"}`, `null`, ``}[h.rnd.IntN(4)]),
	}
}
