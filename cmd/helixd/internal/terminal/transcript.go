package terminal

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// MaxShown is how much of a value is shown in words, in characters; --lines
// and --json have all of it.
const MaxShown = 400

// Indent is where a line's text begins: after the sequence and the label.
const Indent = 21

// Transcript writes a stream as text. The pieces of a model's text become
// one paragraph; each call, answer, error and cut has its own line, with
// its sequence. What only repeats that a step is committed is left out.
type Transcript struct {
	w       io.Writer
	paint   Paint
	session string
	names   map[string]string // of the sub-agents' sessions
	types   map[string]int    // how many sessions there are, by agent type
	shown   map[string]bool   // calls that run not yet, whose arguments were shown
	open    paragraph
	breaks  int // line breaks of the paragraph that nothing has followed yet
	talk    bool
	said    []projector.Message // of the user, that were not written yet
	err     error
}

// paragraph is a block that can continue.
type paragraph struct{ agent, label, call string }

func NewTranscript(w io.Writer, p Paint, session string) *Transcript {
	return &Transcript{w: w, paint: p, session: session, names: map[string]string{}, types: map[string]int{}, shown: map[string]bool{}}
}

// NewTalk returns a transcript for a person who takes part: without sequences, and without
// the steps, checkpoints and state between output and tool calls. Of messages, which are no
// part of a stream, it writes those of the user in their places.
func NewTalk(messages []projector.Message) func(io.Writer, Paint, string) *Transcript {
	return func(w io.Writer, p Paint, session string) *Transcript {
		t := NewTranscript(w, p, session)
		t.talk = true
		for _, m := range messages {
			if m.Role == projector.RoleUser && !m.Hidden() {
				t.said = append(t.said, m)
			}
		}
		return t
	}
}

// say writes what the user has said before a sequence.
func (t *Transcript) say(before uint64) {
	for ; len(t.said) > 0 && t.said[0].Sequence < before; t.said = t.said[1:] {
		t.Close()
		for _, line := range MessageLines(t.said[0]) {
			t.print(t.paint.Text(Bold, "> "+line.Text) + "\n")
		}
	}
}

// spoken reports whether a transcript of a talk has a chunk.
func spoken(c eventlog.Chunk) bool {
	switch c.(type) {
	case *eventlog.StepStart, *eventlog.StepEnd, *eventlog.StepDiscarded, *eventlog.CheckpointCreated, *eventlog.StatePatch, *eventlog.CustomEvent,
		*eventlog.RunPaused, *eventlog.RunResumed:
		return false
	}
	return true
}

// Show writes an event.
func (t *Transcript) Show(e Event) error {
	if e.Type == "chunk" {
		c, err := eventlog.DecodeChunk(e.Chunk)
		if err != nil { // of a log with records that can't be decoded
			t.line(e.Sequence, Plain, "?", "", printableJSON(e.Chunk))
			return t.err
		}
		t.say(e.Sequence)
		if !t.talk || spoken(c) {
			t.chunk(e.Sequence, c)
		} else if _, step := c.(*eventlog.StepStart); step {
			t.Close()
		}
		return t.err
	}
	t.Close()
	t.say(math.MaxUint64)
	if t.talk && e.Type != "error" {
		return t.err
	}
	if e.Type == "error" {
		t.print(t.paint.Text(Red, e.last()) + "\n")
	} else {
		t.print(t.paint.Text(Bold, e.last()) + "\n")
	}
	return t.err
}

func (t *Transcript) print(text string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, text)
	}
}

// Close ends the open paragraph.
func (t *Transcript) Close() {
	if t.open != (paragraph{}) {
		t.print("\n")
	}
	t.open, t.breaks = paragraph{}, 0
}

// head begins a line.
func (t *Transcript) head(seq uint64, s Style, label, agent string) {
	text := ""
	switch {
	case !t.talk:
		text = t.paint.Text(Dim, fmt.Sprintf("%8d", seq)) + "  " + t.paint.Text(s, label) + strings.Repeat(" ", max(Indent-10-len(label), 1))
	case label != "text" && label != "thinking":
		text = t.paint.Text(s, label) + " "
	}
	if name := t.names[agent]; name != "" {
		text += t.paint.Text(cyan, "["+name+"] ")
	}
	t.print(text)
}

// line writes a text in its own line.
func (t *Transcript) line(seq uint64, s Style, label, agent, text string) {
	t.Close()
	t.head(seq, s, label, agent)
	t.print(text + "\n")
}

// run adds to a paragraph, or begins one.
func (t *Transcript) run(seq uint64, s Style, p paragraph, first, more string) {
	if t.open != p {
		t.Close()
		t.head(seq, s, p.label, p.agent)
		t.print(first)
		t.open = p
	}
	body := Plain
	if p.label == "thinking" {
		body = italic
	}
	for i, part := range strings.Split(Readable(more), "\n") {
		if i > 0 {
			t.breaks++
		}
		if part == "" {
			continue
		}
		if t.breaks > 0 {
			t.print(strings.Repeat("\n", t.breaks))
			if !t.talk {
				t.print(strings.Repeat(" ", Indent))
			}
			t.breaks = 0
		}
		t.print(t.paint.Text(body, part))
	}
}

// chunk writes a chunk.
func (t *Transcript) chunk(seq uint64, c eventlog.Chunk) {
	base := eventlog.BaseOf(c)
	agent := base.AgentID
	t.meet(agent, base.AgentType)
	line := func(s Style, label string, words ...string) {
		t.line(seq, s, label, agent, Spaced(words...))
	}
	switch c := c.(type) {
	case *eventlog.TextDelta:
		t.run(seq, Green, paragraph{agent, "text", ""}, "", c.Delta)
	case *eventlog.Thinking:
		t.thinking(seq, c)
	case *eventlog.ToolArgStreamStart:
		t.run(seq, blue, paragraph{agent, "call", c.ToolCallID}, Spaced(Printable(c.ToolName), Printable(c.ToolCallID))+" ", "")
	case *eventlog.ToolArgStreamDelta:
		t.run(seq, blue, paragraph{agent, "call", c.ToolCallID}, "… "+Printable(c.ToolCallID)+" ", c.Delta)
		t.shown[c.ToolCallID] = true
	case *eventlog.ToolArgStreamEnd:
		t.Close()
	case *eventlog.ToolStart:
		if t.talk && t.shown[c.ToolCallID] {
			break // its arguments were shown
		}
		line(blue, "runs", c.ToolName, c.ToolCallID, t.arguments(c.ToolCallID, c.Arguments))
	case *eventlog.ToolEnd:
		if c.Error != nil {
			line(Red, "failed", c.ToolName, c.ToolCallID, *c.Error, code(c.ErrorCode))
		} else {
			line(blue, "result", c.ToolName, c.ToolCallID, Value(c.Result))
		}
	case *eventlog.ToolApprovalRequest:
		line(Yellow, "approval?", c.ToolName, c.ToolCallID, t.arguments(c.ToolCallID, c.Input))
	case *eventlog.ToolApprovalResponse:
		if c.Approved {
			line(Yellow, "approved", c.ToolName, c.ToolCallID, or(c.Reason))
		} else {
			line(Yellow, "denied", c.ToolName, c.ToolCallID, or(c.Reason))
		}
	case *eventlog.ToolInputError:
		line(Red, "bad input", c.ToolName, c.ToolCallID, c.Error)
	case *eventlog.ToolOutputError:
		if t.talk {
			break // the call's end follows, with the code
		}
		line(Red, "failed", c.ToolName, c.ToolCallID, c.Error)
	case *eventlog.SubAgentStart:
		t.meet(c.SubSessionID, c.SubAgentType)
		line(cyan, "agent", t.names[c.SubSessionID], "begins:", c.SubSessionID)
	case *eventlog.SubAgentEnd:
		t.meet(c.SubSessionID, c.SubAgentType)
		line(cyan, "agent", t.names[c.SubSessionID], "has ended:", Value(c.Result))
	case *eventlog.CustomEvent:
		line(Plain, "event", c.EventName, Value(c.Data))
	case *eventlog.StatePatch:
		line(Plain, "state", Operations(c.Patches))
	case *eventlog.Error:
		line(Red, "error", c.Error, code(c.Code))
	case *eventlog.Output:
		line(Green, "output", Value(c.Output))
	case *eventlog.SourceURL:
		line(Plain, "source", c.URL, or(c.Title))
	case *eventlog.SourceDocument:
		line(Plain, "source", c.MediaType, c.Title, or(c.Filename))
	case *eventlog.File:
		line(Plain, "file", c.MediaType, or(c.Filename), Clip(c.URL, maxURL))
	case *eventlog.StepCommitted:
	default:
		t.lifecycle(c, line)
	}
}

// maxURL is how much of a URL is shown: one may be a whole file.
const maxURL = 100

// lifecycle writes a lifecycle chunk.
func (t *Transcript) lifecycle(c eventlog.Chunk, line func(s Style, label string, words ...string)) {
	switch c := c.(type) {
	case *eventlog.StepStart:
		line(Bold, "step", strconv.Itoa(c.Step))
	case *eventlog.StepEnd:
		words := []string{strconv.Itoa(c.Step), "has ended"}
		if c.FinishReason != nil {
			words = append(words, "("+string(*c.FinishReason)+")")
		}
		if u := c.Usage; u != nil {
			words = append(words, fmt.Sprintf("%d tokens in, %d out", u.InputTokens, u.OutputTokens))
		}
		line(Dim, "step", words...)
	case *eventlog.StepDiscarded:
		line(Yellow, "step", c.StepID, "is discarded:", c.Reason)
	case *eventlog.CheckpointCreated:
		line(Dim, "checkpoint", c.CheckpointID)
	case *eventlog.RunInterrupted:
		line(Yellow, "interrupt", or(c.Reason))
	case *eventlog.RunResumed:
		line(Yellow, "resumed", c.Mode, or(c.FromCheckpointID))
	case *eventlog.RunPaused:
		line(Yellow, "paused", c.Reason, or(c.PendingToolName), or(c.PendingToolCallID))
	case *eventlog.ExecutorSuperseded:
		line(Yellow, "superseded", or(c.Reason))
	case *eventlog.StreamResync:
		clear(t.shown)
		if t.talk {
			text := fmt.Sprintf("the output after %d (%s)", c.FromSequence, c.Reason)
			if c.Reason == eventlog.ResyncCrashRecovery {
				text = fmt.Sprintf("the output since the last step (%s): the run generates it again", c.Reason)
			}
			line(Yellow, "discarded", text)
			break
		}
		line(Yellow, "resync", string(c.Reason)+":", fmt.Sprintf("of what came after %d some was truncated; %d messages are left", c.FromSequence, c.MessageCount))
	default:
		raw, err := eventlog.EncodeChunk(c)
		if err != nil { // it came from JSON
			raw = []byte("?")
		}
		line(Dim, Printable(c.Type()), Value(raw))
	}
}

// thinking writes reasoning. The whole text that follows its pieces is not written
// again.
func (t *Transcript) thinking(seq uint64, c *eventlog.Thinking) {
	p := paragraph{c.AgentID, "thinking", ""}
	if !c.IsComplete || t.open != p {
		t.run(seq, Dim, p, "", c.Content)
	}
	if c.IsComplete {
		t.Close()
	}
}

// arguments are those of a call, if they were not shown yet.
func (t *Transcript) arguments(call string, raw json.RawMessage) string {
	if t.shown[call] {
		delete(t.shown, call)
		return ""
	}
	return Value(raw)
}

// meet gives a session a name: the root none, another one that of its agent.
func (t *Transcript) meet(session, agentType string) {
	if session == t.session || t.names[session] != "" {
		return
	}
	t.types[agentType]++
	name := Printable(agentType)
	if n := t.types[agentType]; n > 1 {
		name += "#" + strconv.Itoa(n)
	}
	t.names[session] = name
}

// Spaced joins the words that are not empty, in one line.
func Spaced(words ...string) string {
	var given []string
	for _, w := range words {
		if w != "" {
			given = append(given, Clip(Printable(w), MaxShown))
		}
	}
	return strings.Join(given, " ")
}

// Value is JSON in a line.
func Value(raw json.RawMessage) string { return Clip(printableJSON(raw), MaxShown) }

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

// Operations are changes of a state in a line.
func Operations(ops []eventlog.PatchOp) string {
	all := make([]string, len(ops))
	for i, op := range ops {
		all[i] = Spaced(op.Op, or(op.From), op.Path, Value(op.Value))
	}
	return Clip(strings.Join(all, ", "), MaxShown)
}
