package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/cmd/helixd/internal/terminal"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector"
)

// whole is the range of all of a session.
const whole = ".."

type diffCmd struct {
	source.Flags
	terminal.ColorFlags
	widthFlag
	Session string `arg:"" help:"Session id; or SESSION@A..B; or SESSION@N: since then, or a point to compare with another one."`
	Range   string `arg:"" optional:"" default:".." help:"Sequences A..B, by default from the beginning to the head; or the other point, SESSION@N."`
	All     bool   `help:"Every change of the state, also where it only keeps accounts."`
}

func (c diffCmd) Run(p *flags.Process) error {
	from, to, err := source.ParseRange(c.Range)
	if err != nil && source.IsPoint(c.Session) && source.IsPoint(c.Range) {
		return compareCmd{Flags: c.Flags, ColorFlags: c.ColorFlags, widthFlag: c.widthFlag, A: c.Session, B: c.Range}.Run(p)
	}
	switch {
	case err != nil:
	case c.Range != whole:
		c.Session, err = source.ParseSession(c.Session)
	default:
		if c.Session, from, to, err = source.Between(c.Session); err == nil && from == nil && to == nil {
			var since source.Point
			since, err = source.ParsePoint(c.Session)
			c.Session, from = since.Session, since.At
		}
	}
	if err != nil {
		return err
	}
	q := url.Values{}
	for name, n := range map[string]*uint64{"from": from, "to": to} {
		if n != nil {
			q.Set(name, strconv.FormatUint(*n, 10))
		}
	}
	return inWords(p, c.Flags, source.Session(c.Session, "/diff"), q, func(s *source.Source, d api.StateDiff) error {
		out := page{paint: c.Paint(p.Stdout)}
		out.diff(c.Session, d, stateAt(p.Ctx, s, c.Session, d.From), c.All)
		_, err := io.WriteString(p.Stdout, out.String())
		return err
	})
}

// stateAt returns a session's state for what was there before a change; nil if
// it can't be had.
func stateAt(ctx context.Context, s *source.Source, session string, at uint64) map[string]any {
	answer, err := s.Get(ctx, source.Session(session, "/state"), url.Values{"at": {strconv.FormatUint(at, 10)}})
	if err != nil {
		return nil
	}
	defer answer.Close()
	var found struct{ State map[string]any }
	in := json.NewDecoder(answer)
	in.UseNumber()
	if in.Decode(&found) != nil {
		return nil
	}
	return found.State
}

// page is a text in sections.
type page struct {
	strings.Builder
	paint terminal.Paint
}

func (r *page) section(title string) {
	if r.Len() > 0 {
		r.WriteByte('\n')
	}
	r.line(0, terminal.Bold, title)
}

func (r *page) line(indent int, s terminal.Style, text string) {
	r.WriteString(strings.Repeat(" ", indent))
	r.WriteString(r.paint.Text(s, text))
	r.WriteByte('\n')
}

// diff says what has changed between two moments of a session.
func (r *page) diff(session string, d api.StateDiff, earlier map[string]any, all bool) {
	r.line(0, terminal.Bold, fmt.Sprintf("%s, %d..%d", terminal.Printable(session), d.From, d.To))
	r.line(2, terminal.Plain, strings.Join(spending(d.Spent), ", "))
	if len(d.Messages) > 0 {
		r.section("messages")
		for _, m := range d.Messages {
			r.message(m)
		}
	}
	if len(d.ToolCalls) > 0 {
		r.section("tool calls")
		for _, c := range d.ToolCalls {
			r.callChange(session, c)
		}
	}
	var shown []eventlog.PatchOp
	gone, rest := 0, 0
	for _, op := range d.Patch {
		switch {
		case all || telling(op.Path):
			shown = append(shown, op)
		case op.Op == "remove" && strings.HasPrefix(op.Path, "/messages/"):
			gone++
		case strings.HasPrefix(op.Path, "/messages/") && d.From <= d.To: // printed above
		default:
			rest++
		}
	}
	if gone > 0 {
		r.section("messages")
		r.line(2, terminal.Red, "- "+terminal.Count(gone, "message"))
	}
	if len(shown) > 0 {
		r.section("state")
		for _, op := range shown {
			r.operation(op, earlier)
		}
	}
	if rest > 0 {
		r.line(0, terminal.Dim, fmt.Sprintf("\nand %s of what the state keeps for itself (--all)", terminal.Count(rest, "change")))
	}
}

// telling reports whether a member of the state is worth showing: the other changes of a
// session or sub-agent follow from these members.
func telling(path string) bool {
	if rest, ok := strings.CutPrefix(path, "/children/"); ok {
		_, path, _ = strings.Cut(rest, "/")
		path = "/" + path
	}
	for _, name := range []string{"/customState", "/status", "/output", "/error"} {
		if path == name || strings.HasPrefix(path, name+"/") {
			return true
		}
	}
	return false
}

// message writes a message with its sequence and role.
func (r *page) message(m projector.Message) {
	for i, line := range terminal.MessageLines(m) {
		head := strings.Repeat(" ", terminal.Indent)
		if i == 0 {
			head = r.paint.Text(terminal.Dim, fmt.Sprintf("%8d", m.Sequence)) + fmt.Sprintf("  %-11s", terminal.Printable(string(m.Role)))
		}
		r.WriteString(strings.TrimRight(head+r.paint.Text(line.Style, line.Text), " "))
		r.WriteByte('\n')
	}
}

// callChange says how far a call has come.
func (r *page) callChange(session string, c api.CallChange) {
	was, is := c.Before, c.After
	if was == "" {
		was = "none"
	}
	if is == "" {
		is = "none"
	}
	words := terminal.Spaced(c.ToolName, c.ToolCallID, string(was), "→", string(is), c.Error)
	if c.Error == "" && len(c.Result) > 0 {
		words += " " + terminal.Value(c.Result)
	}
	if c.SessionID != session {
		words = "[" + terminal.Printable(c.SessionID) + "] " + words
	}
	s := terminal.Plain
	if c.After == api.CallFailed {
		s = terminal.Red
	}
	r.line(2, s, words)
}

// operation writes a change of the state.
func (r *page) operation(op eventlog.PatchOp, earlier any) {
	was, known := valueAt(earlier, op.Path)
	switch {
	case op.Op == "add" && !known:
		r.line(2, terminal.Green, "+ "+terminal.Printable(op.Path)+" "+terminal.Value(op.Value))
	case op.Op == "add", op.Op == "replace":
		if !known {
			was = "…"
		}
		r.line(2, terminal.Yellow, "~ "+terminal.Printable(op.Path)+" "+was+" → "+terminal.Value(op.Value))
	case op.Op == "remove":
		r.line(2, terminal.Red, strings.TrimRight("- "+terminal.Printable(op.Path)+" "+was, " "))
	default:
		r.line(2, terminal.Yellow, "~ "+terminal.Operations([]eventlog.PatchOp{op}))
	}
}

// valueAt returns what a state has at a JSON Pointer, as JSON. It follows no
// arrays: what precedes in a patch may have moved their elements.
func valueAt(state any, pointer string) (text string, ok bool) {
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, is := state.(map[string]any)
		if !is {
			return "", false
		}
		if state, is = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)]; !is {
			return "", false
		}
	}
	raw, err := eventlog.Marshal(state)
	if err != nil {
		return "", false
	}
	return terminal.Value(raw), true
}

// spending says what was used, in a few words.
func spending(s api.Spent) []string {
	words := []string{(time.Duration(s.DurationMs) * time.Millisecond).String()}
	if s.Usage != (fact.TokenUsage{}) {
		words = append(words, fmt.Sprintf("%d tokens in, %d out", s.Usage.Prompt, s.Usage.Completion))
	}
	switch {
	case s.Cost != nil:
		words = append(words, fmt.Sprintf("%.4f USD", *s.Cost))
	case len(s.Unpriced) > 0:
		words = append(words, "no price of "+terminal.Printable(strings.Join(s.Unpriced, ", ")))
	}
	return words
}
