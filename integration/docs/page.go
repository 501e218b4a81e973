package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Page is a page of the documentation.
type Page struct {
	Name   string
	Blocks []Block
}

// Block is what a fence encloses.
type Block struct {
	Line     int // of its first line, from 1
	Language string
	File     string // its name, if it is a file
	Text     string
	NotRun   string // why it is not run; empty: it is
	Stays    bool   // its commands run in another terminal, and go on
	Before   string // the text between it and the block, or the heading, before it
	Heading  string // the last one before it, without what makes it one
}

// Command is a line for the shell.
type Command struct {
	Line int
	Text string
	// Output is what the page shows after it.
	Output string
	// Shown is whether the page shows output at all.
	Shown bool
}

var notRun = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

// stays marks a block whose commands run in another terminal.
const stays = "<!-- in another terminal -->"

// Parse reads a page. It fails at a fence that is not closed.
func Parse(name, text string) (Page, error) {
	page := Page{Name: name}
	lines := strings.Split(text, "\n")
	reason, terminal, before, heading := "", false, 0, ""
	for i := 0; i < len(lines); i++ {
		if found := notRun.FindStringSubmatch(lines[i]); found != nil {
			reason = found[1]
			continue
		}
		if lines[i] == stays {
			terminal = true
			continue
		}
		info, ok := strings.CutPrefix(lines[i], "```")
		if !ok {
			if lines[i] != "" {
				reason, terminal = "", false
			}
			if strings.HasPrefix(lines[i], "#") {
				before, heading = i+1, strings.TrimLeft(lines[i], "# ")
			}
			continue
		}
		block := Block{Line: i + 2, NotRun: reason, Stays: terminal, Before: strings.Join(lines[before:i], "\n"), Heading: heading}
		reason, terminal = "", false
		block.Language, block.File, _ = strings.Cut(info, " ")
		start := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			return Page{}, fmt.Errorf("%s:%d: the block has no end", name, start)
		}
		block.Text = strings.Join(lines[start:i], "\n") + "\n"
		page.Blocks = append(page.Blocks, block)
		before = i + 1
	}
	return page, nil
}

// Commands returns what a block tells the shell: a sh block is one command, a
// console block one for each prompt.
func (b Block) Commands() []Command {
	if b.NotRun != "" {
		return nil
	}
	switch b.Language {
	case "sh":
		return []Command{{Line: b.Line, Text: b.Text}}
	case "console":
	default:
		return nil
	}
	var out []Command
	for i, line := range strings.Split(strings.TrimSuffix(b.Text, "\n"), "\n") {
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			out = append(out, Command{Line: b.Line + i, Text: text, Shown: true})
		} else if len(out) > 0 {
			out[len(out)-1].Output += line + "\n"
		}
	}
	return out
}
