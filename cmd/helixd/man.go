package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/alecthomas/kong"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/eventlog/version"
)

type manCmd struct {
	Command []string `arg:"" optional:"" help:"Print the page of this command, such as memories list; the default is the page of helixd."`
	Out     string   `placeholder:"DIR" type:"path" help:"Write the pages of helixd and of all its commands to this folder instead."`
}

// Help is shown by helixd man --help.
func (manCmd) Help() string {
	return "helixd man | man -l - shows a page. A release contains all pages in man/man1."
}

// Run prints a manual page, or writes all.
func (c manCmd) Run(p *flags.Process) error {
	k, err := newParser(new(cli))
	if err != nil {
		return err
	}
	if c.Out == "" {
		node := k.Model.Node
		for _, name := range c.Command {
			if node = childOf(node, name); node == nil {
				return fmt.Errorf("there is no command %q", strings.Join(c.Command, " "))
			}
		}
		_, err := io.WriteString(p.Stdout, manPage(k.Model, node))
		return err
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	for _, node := range append(k.Model.Leaves(true), k.Model.Node) {
		if err := os.WriteFile(filepath.Join(c.Out, manName(node)+".1"), []byte(manPage(k.Model, node)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// manName is the name of a command's page, which man finds for "man helixd memories-list" too.
func manName(node *kong.Node) string { return strings.ReplaceAll(node.FullPath(), " ", "-") }

// manPage returns the manual page of helixd or of one of its commands, from what --help shows.
func manPage(app *kong.Application, node *kong.Node) string {
	var b strings.Builder
	section := func(title string) { fmt.Fprintf(&b, ".SH %s\n", title) }
	item := func(term, text string) { fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roffWord(term), roff(text)) }
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"helixd %s\" \"helixd\"\n", roffWord(strings.ToUpper(manName(node))), roffWord(version.Current()))
	section("NAME")
	whole := node == app.Node
	help, detail := node.Help, node.Detail
	if whole {
		help, detail, _ = strings.Cut(node.Help, "\n\n")
	}
	detail, _, _ = strings.Cut(detail, "Examples:\n\n")
	fmt.Fprintf(&b, "%s \\- %s\n", roffWord(manName(node)), roff(strings.TrimSuffix(help, ".")))
	section("SYNOPSIS")
	if whole {
		fmt.Fprintf(&b, "\\fB%s\\fR %s\n", roffWord(node.Name), roff("<command> [flags]"))
	} else {
		fmt.Fprintf(&b, "\\fB%s\\fR %s\n", roffWord(node.FullPath()), roff(strings.TrimPrefix(node.Summary(), node.Path())))
	}
	if detail = strings.TrimSpace(detail); detail != "" {
		section("DESCRIPTION")
		for i, paragraph := range strings.Split(detail, "\n\n") {
			if i > 0 {
				b.WriteString(".PP\n")
			}
			b.WriteString(roff(paragraph) + "\n")
		}
	}
	if len(node.Positional) > 0 {
		section("ARGUMENTS")
		for _, arg := range node.Positional {
			item(arg.Summary(), kong.DefaultHelpValueFormatter(arg))
		}
	}
	section("OPTIONS")
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			item(f.String(), kong.DefaultHelpValueFormatter(f.Value))
		}
	}
	if whole {
		section("COMMANDS")
		for _, group := range groups {
			fmt.Fprintf(&b, ".SS %s\n", roff(strings.TrimSuffix(group.Title, ":")))
			for _, command := range app.Leaves(true) {
				if command.ClosestGroup().Key == group.Key {
					item(command.Path(), command.Help)
				}
			}
		}
		return b.String()
	}
	section("EXAMPLES")
	b.WriteString(".nf\n")
	for _, line := range examples[node.Path()] {
		b.WriteString(roff(line) + "\n")
	}
	b.WriteString(".fi\n")
	section("SEE ALSO")
	b.WriteString("\\fBhelixd\\fR(1)\n")
	return b.String()
}

// roff escapes a text, so that no character of it is a command.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`, "\n", " ").Replace(strings.TrimSpace(text))
	var b strings.Builder
	if strings.HasPrefix(text, ".") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		if r < unicode.MaxASCII {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// roffWord is [roff] for an argument of a macro.
func roffWord(text string) string { return strings.ReplaceAll(roff(text), `"`, `\(dq`) }
