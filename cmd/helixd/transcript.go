package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// maxShown is how much of a value is shown in words, in characters; --lines
// and --json have all of it.
const maxShown = 400

// indent is where a line's text begins: behind the sequence and the label.
const indent = 21

// transcript tells a stream in words. What a model writes in pieces runs on in
// one paragraph; each call, answer, error and cut has a line of its own, with
// its sequence. What only repeats that a step is committed is left out.
type transcript struct {
	w       io.Writer
	paint   paint
	session string
	names   map[string]string // of the sub-agents' sessions
	types   map[string]int    // how many sessions there are, by agent type
	told    map[string]bool   // calls that run not yet, whose arguments were shown
	open    paragraph
	breaks  int // line breaks of the paragraph that nothing has followed yet
	err     error
}

// paragraph is a block that can go on.
type paragraph struct{ agent, label, call string }

func newTranscript(w io.Writer, p paint, session string) *transcript {
	return &transcript{w: w, paint: p, session: session, names: map[string]string{}, types: map[string]int{}, told: map[string]bool{}}
}

// event tells an event.
func (t *transcript) event(e streamEvent) error {
	if e.Type == "chunk" {
		c, err := eventlog.DecodeChunk(e.Chunk)
		if err != nil { // of a log that holds what nobody can read
			t.line(e.Sequence, plain, "?", "", printableJSON(e.Chunk))
			return t.err
		}
		t.chunk(e.Sequence, c)
		return t.err
	}
	t.close()
	if e.Type == "error" {
		t.print(t.paint.text(red, e.last()) + "\n")
	} else {
		t.print(t.paint.text(bold, e.last()) + "\n")
	}
	return t.err
}

func (t *transcript) print(text string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, text)
	}
}

// close ends the open paragraph.
func (t *transcript) close() {
	if t.open != (paragraph{}) {
		t.print("\n")
	}
	t.open, t.breaks = paragraph{}, 0
}

// head begins a line.
func (t *transcript) head(seq uint64, s style, label, agent string) {
	text := t.paint.text(dim, fmt.Sprintf("%8d", seq)) + "  " + t.paint.text(s, label) + strings.Repeat(" ", max(indent-10-len(label), 1))
	if name := t.names[agent]; name != "" {
		text += t.paint.text(cyan, "["+name+"] ")
	}
	t.print(text)
}

// line tells something in a line of its own.
func (t *transcript) line(seq uint64, s style, label, agent, text string) {
	t.close()
	t.head(seq, s, label, agent)
	t.print(text + "\n")
}

// run adds to a paragraph, or begins one.
func (t *transcript) run(seq uint64, s style, p paragraph, first, more string) {
	if t.open != p {
		t.close()
		t.head(seq, s, p.label, p.agent)
		t.print(first)
		t.open = p
	}
	body := plain
	if p.label == "thinking" {
		body = italic
	}
	for i, part := range strings.Split(readable(more), "\n") {
		if i > 0 {
			t.breaks++
		}
		if part == "" {
			continue
		}
		if t.breaks > 0 {
			t.print(strings.Repeat("\n", t.breaks) + strings.Repeat(" ", indent))
			t.breaks = 0
		}
		t.print(t.paint.text(body, part))
	}
}

// chunk tells a chunk.
func (t *transcript) chunk(seq uint64, c eventlog.Chunk) {
	base := eventlog.BaseOf(c)
	agent := base.AgentID
	t.meet(agent, base.AgentType)
	line := func(s style, label string, words ...string) {
		t.line(seq, s, label, agent, spaced(words...))
	}
	switch c := c.(type) {
	case *eventlog.TextDelta:
		t.run(seq, green, paragraph{agent, "text", ""}, "", c.Delta)
	case *eventlog.Thinking:
		t.thinking(seq, c)
	case *eventlog.ToolArgStreamStart:
		t.run(seq, blue, paragraph{agent, "call", c.ToolCallID}, spaced(printable(c.ToolName), printable(c.ToolCallID))+" ", "")
	case *eventlog.ToolArgStreamDelta:
		t.run(seq, blue, paragraph{agent, "call", c.ToolCallID}, "… "+printable(c.ToolCallID)+" ", c.Delta)
		t.told[c.ToolCallID] = true
	case *eventlog.ToolArgStreamEnd:
		t.close()
	case *eventlog.ToolStart:
		line(blue, "runs", c.ToolName, c.ToolCallID, t.arguments(c.ToolCallID, c.Arguments))
	case *eventlog.ToolEnd:
		if c.Error != nil {
			line(red, "failed", c.ToolName, c.ToolCallID, *c.Error, code(c.ErrorCode))
		} else {
			line(blue, "result", c.ToolName, c.ToolCallID, value(c.Result))
		}
	case *eventlog.ToolApprovalRequest:
		line(yellow, "approval?", c.ToolName, c.ToolCallID, t.arguments(c.ToolCallID, c.Input))
	case *eventlog.ToolApprovalResponse:
		if c.Approved {
			line(yellow, "approved", c.ToolName, c.ToolCallID, or(c.Reason))
		} else {
			line(yellow, "denied", c.ToolName, c.ToolCallID, or(c.Reason))
		}
	case *eventlog.ToolInputError:
		line(red, "bad input", c.ToolName, c.ToolCallID, c.Error)
	case *eventlog.ToolOutputError:
		line(red, "failed", c.ToolName, c.ToolCallID, c.Error)
	case *eventlog.SubAgentStart:
		t.meet(c.SubSessionID, c.SubAgentType)
		line(cyan, "agent", t.names[c.SubSessionID], "begins:", c.SubSessionID)
	case *eventlog.SubAgentEnd:
		t.meet(c.SubSessionID, c.SubAgentType)
		line(cyan, "agent", t.names[c.SubSessionID], "has ended:", value(c.Result))
	case *eventlog.CustomEvent:
		line(plain, "event", c.EventName, value(c.Data))
	case *eventlog.StatePatch:
		line(plain, "state", operations(c.Patches))
	case *eventlog.Error:
		line(red, "error", c.Error, code(c.Code))
	case *eventlog.Output:
		line(green, "output", value(c.Output))
	case *eventlog.SourceURL:
		line(plain, "source", c.URL, or(c.Title))
	case *eventlog.SourceDocument:
		line(plain, "source", c.MediaType, c.Title, or(c.Filename))
	case *eventlog.File:
		line(plain, "file", c.MediaType, or(c.Filename), clip(c.URL, maxURL))
	case *eventlog.StepCommitted:
	default:
		t.lifecycle(seq, c, line)
	}
}

// maxURL is how much of a URL is shown: one may be a whole file.
const maxURL = 100

// lifecycle tells a chunk that the runtime writes about itself.
func (t *transcript) lifecycle(seq uint64, c eventlog.Chunk, line func(s style, label string, words ...string)) {
	switch c := c.(type) {
	case *eventlog.StepStart:
		line(bold, "step", strconv.Itoa(c.Step))
	case *eventlog.StepEnd:
		words := []string{strconv.Itoa(c.Step), "has ended"}
		if c.FinishReason != nil {
			words = append(words, "("+string(*c.FinishReason)+")")
		}
		if u := c.Usage; u != nil {
			words = append(words, fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens))
		}
		line(dim, "step", words...)
	case *eventlog.StepDiscarded:
		line(yellow, "step", c.StepID, "is discarded:", c.Reason)
	case *eventlog.CheckpointCreated:
		line(dim, "checkpoint", c.CheckpointID)
	case *eventlog.RunInterrupted:
		line(yellow, "interrupt", or(c.Reason))
	case *eventlog.RunResumed:
		line(yellow, "resumed", c.Mode, or(c.FromCheckpointID))
	case *eventlog.RunPaused:
		line(yellow, "paused", c.Reason, or(c.PendingToolName), or(c.PendingToolCallID))
	case *eventlog.ExecutorSuperseded:
		line(yellow, "superseded", or(c.Reason))
	case *eventlog.StreamResync:
		clear(t.told)
		line(yellow, "resync", string(c.Reason)+":", fmt.Sprintf("of what came after %d some was truncated; %d messages are left", c.FromSequence, c.MessageCount))
	default:
		raw, err := eventlog.EncodeChunk(c)
		if err != nil { // it came from JSON
			raw = []byte("?")
		}
		line(dim, printable(c.Type()), value(raw))
	}
}

// thinking tells reasoning. The whole that follows on its pieces says nothing
// new.
func (t *transcript) thinking(seq uint64, c *eventlog.Thinking) {
	p := paragraph{c.AgentID, "thinking", ""}
	if !c.IsComplete || t.open != p {
		t.run(seq, dim, p, "", c.Content)
	}
	if c.IsComplete {
		t.close()
	}
}

// arguments are those of a call, if they were not shown yet.
func (t *transcript) arguments(call string, raw json.RawMessage) string {
	if t.told[call] {
		delete(t.told, call)
		return ""
	}
	return value(raw)
}

// meet gives a session a name: the root none, another one that of its agent.
func (t *transcript) meet(session, agentType string) {
	if session == t.session || t.names[session] != "" {
		return
	}
	t.types[agentType]++
	name := printable(agentType)
	if n := t.types[agentType]; n > 1 {
		name += "#" + strconv.Itoa(n)
	}
	t.names[session] = name
}

// spaced joins the words that are not empty, in one line.
func spaced(words ...string) string {
	var given []string
	for _, w := range words {
		if w != "" {
			given = append(given, clip(printable(w), maxShown))
		}
	}
	return strings.Join(given, " ")
}

// value is JSON in a line.
func value(raw json.RawMessage) string { return clip(printableJSON(raw), maxShown) }

func or(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func code(s *string) string {
	if or(s) == "" {
		return ""
	}
	return "(" + *s + ")"
}

// operations are changes of a state in a line.
func operations(ops []eventlog.PatchOp) string {
	all := make([]string, len(ops))
	for i, op := range ops {
		all[i] = spaced(op.Op, or(op.From), op.Path, value(op.Value))
	}
	return clip(strings.Join(all, ", "), maxShown)
}
