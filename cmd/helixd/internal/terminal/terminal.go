package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// IsTerminal reports whether a file is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // as the standard input of services is
	return err != nil || !os.SameFile(info, null)
}

// obeyed reports whether a terminal interprets a character instead of showing it, or does not
// show it: a session's content must contain neither.
// The two joiners are of scripts and of emoji.
func obeyed(r rune) bool {
	return r != ' ' && r != '\u200c' && r != '\u200d' && !unicode.IsPrint(r)
}

// Printable is a text on one line, without what a terminal obeys.
func Printable(s string) string {
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

// Readable is printable for a text that keeps its lines and what is indented.
func Readable(s string) string {
	parts := strings.Split(strings.NewReplacer("\r\n", "\n", "\t", "    ").Replace(s), "\n")
	for i := range parts {
		parts[i] = Printable(parts[i])
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
			high, low := utf16.EncodeRune(r)
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

// JSON returns where a command writes its JSON: w itself or, if w is a terminal,
// a writer that escapes what the terminal would obey.
func JSON(w io.Writer) io.Writer {
	if IsTerminal(w) {
		return EscapeJSON(w)
	}
	return w
}

// PrintJSON copies an answer to w as it is, and ends its line.
func PrintJSON(w io.Writer, answer io.Reader) error {
	out := lastByte{w: JSON(w)}
	if _, err := io.Copy(&out, answer); err != nil || out.last == '\n' || out.last == 0 {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// EscapeJSON returns a writer that escapes in JSON what a terminal obeys, and
// passes it on to w.
func EscapeJSON(w io.Writer) io.Writer { return &jsonWriter{w: w} }

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

// Word is a text as one word of a shell's command line.
func Word(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@%+,=", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(Printable(s), "'", `'\''`) + "'"
}

// Clip shortens a text that is longer than so many characters.
func Clip(s string, most int) string {
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

// ColorFlags say whether to use colours.
type ColorFlags struct {
	Color string `help:"Colours: auto (on a terminal, unless NO_COLOR is set), always or never." enum:"auto,always,never" default:"auto"`
}

// Paint returns what styles texts that are written to w.
func (f ColorFlags) Paint(w io.Writer) Paint {
	switch f.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return Paint(os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && IsTerminal(w))
}

// Paint styles texts, if it is true.
type Paint bool

// Style is a text style, as an SGR sequence of ECMA-48.
type Style string

// Styles.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	italic Style = "2;3"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "1;33"
	blue   Style = "34"
	cyan   Style = "36"
)

func (p Paint) Text(s Style, text string) string {
	if !p || s == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}
