package inspect

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// widthFlag is the width of a side-by-side comparison.
type widthFlag struct {
	Width int `help:"Columns of the view, at least 40; without it $COLUMNS, those of the terminal, or 120." placeholder:"N"`
}

// Widths of side-by-side comparisons, in columns.
const (
	minWidth   = 40 // what two sides and their names need
	plainWidth = 120
)

func (f widthFlag) width(p *flags.Process) int {
	columns, _ := strconv.Atoi(os.Getenv("COLUMNS")) // the shell's: whatever it holds is no reason to fail
	return max(cmp.Or(max(f.Width, 0), max(columns, 0), terminal.Width(p.Stdout), plainWidth), minWidth)
}

type compareCmd struct {
	source.Flags
	terminal.ColorFlags
	widthFlag
	A string `arg:"" help:"Session, as SESSION or, at a sequence, SESSION@N."`
	B string `arg:"" help:"The other one."`
}

func (c compareCmd) Run(p *flags.Process) error {
	q := url.Values{}
	for name, text := range map[string]string{"a": c.A, "b": c.B} {
		m, err := source.ParsePoint(text)
		if err != nil {
			return err
		}
		q.Set(name, m.Session)
		if m.At != nil {
			q.Set(name+"At", strconv.FormatUint(*m.At, 10))
		}
	}
	return inWords(p, c.Flags, "/compare", q, func(s *source.Source, found api.Comparison) error {
		out := page{paint: c.Paint(p.Stdout)}
		var earlier any
		if len(found.Patch) > 0 {
			earlier = stateAt(p.Ctx, s, found.A.SessionID, found.A.Sequence)["customState"]
		}
		out.compare(found, earlier, c.width(p))
		_, err := io.WriteString(p.Stdout, out.String())
		return err
	})
}

// labelWidth is what the names of what is compared take.
const labelWidth = 12

// compare says what differs between two moments, side by side.
func (r *page) compare(c api.Comparison, earlier any, width int) {
	t := sides{r: r, width: (width - labelWidth - 3) / 2}
	t.row("", terminal.Bold, c.A.SessionID+"@"+strconv.FormatUint(c.A.Sequence, 10), c.B.SessionID+"@"+strconv.FormatUint(c.B.Sequence, 10))
	t.row("agent", terminal.Plain, c.A.AgentType, c.B.AgentType)
	t.row("status", terminal.Plain, string(c.A.Status), string(c.B.Status))
	t.row("messages", terminal.Plain, strconv.Itoa(len(c.A.Messages)), strconv.Itoa(len(c.B.Messages)))
	t.row("tool calls", terminal.Plain, calls(c.A.ToolCalls), calls(c.B.ToolCalls))
	t.row("spent", terminal.Plain, strings.Join(spending(c.A.Spent), ", "), strings.Join(spending(c.B.Spent), ", "))
	t.steps(c.A.Steps, c.B.Steps)
	if c.ForkedFrom != nil {
		r.line(0, terminal.Dim, fmt.Sprintf("forked from %s at %d", terminal.Printable(c.ForkedFrom.SessionID), c.ForkedFrom.Sequence))
	}
	r.section("messages")
	if c.Common > 0 {
		r.line(0, terminal.Dim, "the first "+terminal.Count(c.Common, "message")+" of both: the same")
	}
	a, b := c.A.Messages[min(c.Common, len(c.A.Messages)):], c.B.Messages[min(c.Common, len(c.B.Messages)):]
	for i := range max(len(a), len(b)) {
		t.messages(at(a, i), at(b, i))
	}
	if len(c.Patch) > 0 {
		r.section("custom state, from left to right")
		for _, op := range c.Patch {
			r.operation(op, earlier)
		}
	}
}

func at[T any](all []T, i int) *T {
	if i < len(all) {
		return &all[i]
	}
	return nil
}

// steps writes what the steps of both took, those of the same number side by
// side: a fork has not those that it has taken over.
func (t sides) steps(a, b []projector.StepTime) {
	type step struct{ turn, step int }
	var all []step
	words := [2]map[step]string{{}, {}}
	for i, side := range [][]projector.StepTime{a, b} {
		for _, s := range side {
			key := step{s.Turn, s.Step}
			all = append(all, key)
			words[i][key] = strings.Join(spending(api.Spent{DurationMs: s.DurationMs, Usage: s.Usage}), ", ")
		}
	}
	slices.SortFunc(all, func(a, b step) int { return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.step, b.step)) })
	for _, key := range slices.Compact(all) {
		t.row(fmt.Sprintf("step %d.%d", key.turn, key.step), terminal.Plain, words[0][key], words[1][key])
	}
}

// calls counts calls by how far they have come.
func calls(all []api.CallAt) string {
	counts := map[api.CallStatus]int{}
	for _, c := range all {
		counts[c.Status]++
	}
	var words []string
	for _, status := range []api.CallStatus{
		api.CallDone, api.CallFailed, api.CallWaiting, api.CallRunning, api.CallPending,
	} {
		if n := counts[status]; n > 0 {
			words = append(words, strconv.Itoa(n)+" "+string(status))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

// sides writes two texts side by side.
type sides struct {
	r     *page
	width int // of each side
}

// row writes two texts, wrapped, after their name; the right one in the given
// style, and yellow where it is another.
func (t sides) row(name string, s terminal.Style, left, right string) {
	if s == terminal.Plain && left != right {
		s = terminal.Yellow
	}
	t.lines(name, wrap([]terminal.Line{{Style: s, Text: terminal.Printable(left)}}, t.width), wrap([]terminal.Line{{Style: s, Text: terminal.Printable(right)}}, t.width))
}

// messages writes two messages, of which one may be missing.
func (t sides) messages(a, b *projector.Message) {
	name := ""
	var left, right []terminal.Line
	if b != nil {
		name, right = string(b.Role), terminal.MessageLines(*b)
	}
	if a != nil {
		name, left = string(a.Role), terminal.MessageLines(*a)
	}
	if a != nil && b != nil && a.Role != b.Role {
		name = ""
		left = append([]terminal.Line{{Style: terminal.Bold, Text: terminal.Printable(string(a.Role))}}, left...)
		right = append([]terminal.Line{{Style: terminal.Bold, Text: terminal.Printable(string(b.Role))}}, right...)
	}
	t.lines(name, wrap(left, t.width), wrap(right, t.width))
}

func (t sides) lines(name string, left, right []terminal.Line) {
	for i := range max(len(left), len(right), 1) {
		label := ""
		if i == 0 {
			label = terminal.Printable(name)
		}
		text := t.r.paint.Text(terminal.Dim, label) + strings.Repeat(" ", max(labelWidth-columns(label), 1))
		l, r := at(left, i), at(right, i)
		if l == nil {
			l = new(terminal.Line)
		}
		text += t.r.paint.Text(l.Style, l.Text) + strings.Repeat(" ", max(t.width-columns(l.Text), 0)) + " │ "
		if r != nil {
			text += t.r.paint.Text(r.Style, r.Text)
		}
		t.r.WriteString(strings.TrimRight(text, " "))
		t.r.WriteByte('\n')
	}
}

// wrap breaks lines that are longer than so many columns, between words where
// it can.
func wrap(all []terminal.Line, width int) (out []terminal.Line) {
	for _, line := range all {
		rest := line.Text
		for columns(rest) > width {
			cut, space, n := 0, 0, 0
			for i, r := range rest {
				if n += columnsOf(r); n > width && i > 0 {
					break
				}
				if cut = i + len(string(r)); r == ' ' {
					space = cut
				}
			}
			if space == 0 || rest[cut:] != "" && rest[cut] == ' ' {
				space = cut
			}
			out = append(out, terminal.Line{Style: line.Style, Text: strings.TrimRight(rest[:space], " ")})
			rest = strings.TrimLeft(rest[space:], " ")
		}
		out = append(out, terminal.Line{Style: line.Style, Text: rest})
	}
	return out
}

func columns(s string) (n int) {
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// columnsOf is about how wide terminals show a character.
func columnsOf(r rune) int {
	switch {
	case r == '\u200c', r == '\u200d', unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana),
		r >= 0x3000 && r <= 0x303f, r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}
