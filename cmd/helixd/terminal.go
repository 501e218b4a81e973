package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isTerminal reports whether somebody reads, or types, there.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// obeyed reports whether a terminal does something else with a character than
// to show it, or shows nothing of it: what a session holds must do neither.
// The two joiners are of scripts and of emoji.
func obeyed(r rune) bool {
	return r != ' ' && r != '\u200c' && r != '\u200d' && !unicode.IsPrint(r)
}

// printable is a text on one line, without what a terminal obeys.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case obeyed(r):
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// readable is printable for a text that keeps its lines and what is indented.
func readable(s string) string {
	parts := strings.Split(strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(s), "\n")
	for i := range parts {
		parts[i] = printable(parts[i])
	}
	return strings.Join(parts, "\n")
}

// printableJSON is the same JSON with what a terminal obeys escaped.
func printableJSON(raw []byte) string {
	var b strings.Builder
	_, _ = (&jsonWriter{w: &b}).Write(raw) // a Builder takes everything
	return b.String()
}

// jsonWriter escapes what a terminal obeys, as JSON's strings have it. Line
// breaks, which are between tokens there, stay.
type jsonWriter struct {
	w    io.Writer
	rest []byte // the beginning of a character
}

func (j *jsonWriter) Write(b []byte) (int, error) {
	text := append(j.rest, b...)
	out := make([]byte, 0, len(text)+16)
	for len(text) > 0 && utf8.FullRune(text) {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || !obeyed(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := surrogates(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	j.rest = append(j.rest[:0:0], text...)
	_, err := j.w.Write(out)
	return len(b), err
}

func surrogates(r rune) (high, low rune) {
	r -= 0x10000
	return 0xd800 + r>>10, 0xdc00 + r&0x3ff
}

// jsonTo returns where a command writes its JSON: w itself or, if w is a terminal,
// a writer that escapes what the terminal would obey.
func jsonTo(w io.Writer) io.Writer {
	if isTerminal(w) {
		return escapeJSON(w)
	}
	return w
}

// printJSON copies an answer to w as it is, and ends its line.
func printJSON(w io.Writer, answer io.Reader) error {
	out := lastByte{w: jsonTo(w)}
	if _, err := io.Copy(&out, answer); err != nil || out.last == '\n' || out.last == 0 {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// escapeJSON returns a writer that escapes in JSON what a terminal obeys, and
// passes it on to w.
func escapeJSON(w io.Writer) io.Writer { return &jsonWriter{w: w} }

// lastByte remembers the last byte that was written.
type lastByte struct {
	w    io.Writer
	last byte
}

func (l *lastByte) Write(b []byte) (int, error) {
	if len(b) > 0 {
		l.last = b[len(b)-1]
	}
	return l.w.Write(b)
}

// clip shortens a text that is longer than so many characters.
func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	n := 0
	for i := range s {
		if n == most {
			return fmt.Sprintf("%s… (%d bytes)", s[:i], len(s))
		}
		n++
	}
	return s
}

// colorFlags say whether to use colours.
type colorFlags struct {
	Color string `help:"Colours: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto"`
}

// paint returns what styles texts that are written to w.
func (f colorFlags) paint(w io.Writer) paint {
	switch f.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return paint(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w))
}

// paint styles texts, if it is true.
type paint bool

// style is what a terminal is told, in the form of ECMA-48's SGR.
type style string

// Styles.
const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	italic style = "2;3"
	red    style = "31"
	green  style = "32"
	yellow style = "1;33"
	blue   style = "34"
	cyan   style = "36"
)

func (p paint) text(s style, text string) string {
	if !p || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
