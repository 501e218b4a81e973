package terminal

import (
	"strings"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/projector"
)

// Line is a line of what a message says.
type Line struct {
	Style Style
	Text  string
}

// MessageLines returns a message in lines.
func MessageLines(m projector.Message) (all []Line) {
	add := func(s Style, text string) {
		for line := range strings.SplitSeq(strings.TrimRight(Clip(Readable(text), MaxShown), "\n"), "\n") {
			all = append(all, Line{s, line})
		}
	}
	file := func(f fact.MessageFile) { add(Plain, Spaced("file", f.MediaType, f.Filename)) }
	switch {
	case m.Role == projector.RoleTool && m.Denial != nil:
		add(Yellow, Spaced("denied", m.ToolName, m.ToolCallID, m.Denial.Reason))
	case m.Role == projector.RoleTool && m.Error != "":
		add(Red, Spaced("failed", m.ToolName, m.ToolCallID, m.Error, code(&m.ErrorCode)))
	case m.Role == projector.RoleTool:
		add(Plain, Spaced(m.ToolName, m.ToolCallID)+" "+Value(m.Result))
	case len(m.Parts) == 0:
		add(Plain, m.Content)
	}
	for _, p := range m.Parts {
		switch {
		case p.Reasoning != "":
			add(italic, "thinks: "+p.Reasoning)
		case p.Text != "":
			add(Plain, p.Text)
		case p.ToolCall != nil:
			add(blue, Spaced("calls", p.ToolCall.Name, p.ToolCall.ID)+" "+Value(p.ToolCall.Arguments))
		case p.Source != nil:
			add(Plain, Spaced("source", p.Source.URL, p.Source.Title, p.Source.Filename))
		case p.File != nil:
			file(*p.File)
		}
	}
	for _, f := range m.Files {
		file(f)
	}
	return all
}
