package main

import (
	"strings"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector"
)

// saidLine is a line of what a message says.
type saidLine struct {
	style style
	text  string
}

// said tells a message, in lines.
func said(m projector.Message) (all []saidLine) {
	add := func(s style, text string) {
		for line := range strings.SplitSeq(strings.TrimRight(clip(readable(text), maxShown), "\n"), "\n") {
			all = append(all, saidLine{s, line})
		}
	}
	file := func(f eventlog.MessageFile) { add(plain, spaced("file", f.MediaType, f.Filename)) }
	switch {
	case m.Role == projector.RoleTool && m.Denial != nil:
		add(yellow, spaced("denied", m.ToolName, m.ToolCallID, m.Denial.Reason))
	case m.Role == projector.RoleTool && m.Error != "":
		add(red, spaced("failed", m.ToolName, m.ToolCallID, m.Error, code(&m.ErrorCode)))
	case m.Role == projector.RoleTool:
		add(plain, spaced(m.ToolName, m.ToolCallID)+" "+value(m.Result))
	case len(m.Parts) == 0:
		add(plain, m.Content)
	}
	for _, p := range m.Parts {
		switch {
		case p.Reasoning != "":
			add(italic, "thinks: "+p.Reasoning)
		case p.Text != "":
			add(plain, p.Text)
		case p.ToolCall != nil:
			add(blue, spaced("calls", p.ToolCall.Name, p.ToolCall.ID)+" "+value(p.ToolCall.Arguments))
		case p.Source != nil:
			add(plain, spaced("source", p.Source.URL, p.Source.Title, p.Source.Filename))
		case p.File != nil:
			file(*p.File)
		}
	}
	for _, f := range m.Files {
		file(f)
	}
	return all
}
