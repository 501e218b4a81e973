package cohort

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/helixd/helixd/eventlog"
)

const (
	// shortText is the length, in characters, below which a text is replaced only where it stands as a
	// word of its own.
	shortText = 4
	// shortNumber is the number of digits below which a number is replaced only where a rule names it.
	shortNumber = 6
	// firstNumber begins the placeholders of numbers.
	firstNumber = 9_000_000_001
)

// values are what is to be replaced, and by what.
type values struct {
	placeholders map[string]string
	numbers      map[string]bool // placeholders of these are numbers
}

func newValues() *values { return &values{map[string]string{}, map[string]bool{}} }

func (v *values) add(text string, number bool) {
	if text == "" || v.placeholders[text] != "" {
		return
	}
	n := len(v.placeholders)
	if v.numbers[text] = number; number {
		v.placeholders[text] = fmt.Sprint(firstNumber + n)
	} else {
		v.placeholders[text] = fmt.Sprintf("redacted-%d", n+1)
	}
}

// words replaces values.
type words struct {
	*values
	rules *Rules
	long  *strings.Replacer // of values and their encodings
	short []string          // values
}

func (v *values) words(r *Rules) *words {
	w := &words{values: v, rules: r}
	sorted := make([]string, 0, len(v.placeholders))
	for text := range v.placeholders {
		switch n := utf8.RuneCountInString(text); {
		case v.numbers[text] && n < shortNumber:
		case n < shortText:
			w.short = append(w.short, text)
		default:
			sorted = append(sorted, text)
		}
	}
	slices.Sort(w.short)
	slices.SortFunc(sorted, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, encode := range []func(string) []string{func(s string) []string { return []string{s} }, encodings} {
		for _, text := range sorted {
			for _, form := range encode(text) {
				pairs = append(pairs, form, v.placeholders[text])
			}
		}
	}
	w.long = strings.NewReplacer(pairs...)
	return w
}

// session replaces values in a session.
func (w *words) session(s *Session) error {
	s.ID, s.Agent = w.text(s.ID), w.text(s.Agent)
	s.Tags = slices.Clone(s.Tags)
	for i, tag := range s.Tags {
		s.Tags[i] = w.text(tag)
	}
	for i := range s.Log {
		r := &s.Log[i]
		for _, label := range []*string{&r.Agent, &r.Run, &r.Call, &r.Writer} {
			*label = w.text(*label)
		}
		payload, err := w.json(nil, r.Payload)
		if err != nil {
			return fmt.Errorf("cohort: record %d: %w", r.Sequence, err)
		}
		r.Entry = eventlog.Entry{Envelope: r.Envelope, Payload: payload}
		if err := readable(r.Entry); err != nil {
			return &RuleError{"", fmt.Sprintf("record %d of a session can't be read any more, since a rule names what helixd itself writes: %v", r.Sequence, err)}
		}
		if left := string(payload); w.long.Replace(left) != left {
			return &RuleError{"", fmt.Sprintf("a value is still in record %d of a session: a placeholder contains it, or a name of helixd's own", r.Sequence)}
		}
	}
	return nil
}

// readable returns why a record can't be read.
func readable(e eventlog.Entry) (err error) {
	if e.Kind == eventlog.KindFact {
		_, err = e.Fact()
	} else {
		_, err = e.Chunk()
	}
	return err
}

// json replaces values in the texts and numbers of JSON that is below a path.
func (w *words) json(path []string, raw []byte) ([]byte, error) {
	return rewrite(path, raw, func(path []string, v any) any {
		switch v := v.(type) {
		case json.Number:
			return w.number(path, v)
		case string:
			if !isWord(path) {
				return w.text(v)
			}
		}
		return v
	})
}

// number replaces a number that a rule names, and one that contains a long value. helixd's own numbers
// are neither.
func (w *words) number(path []string, n json.Number) json.Number {
	if p := w.placeholders[n.String()]; p != "" && w.numbers[n.String()] && w.rules.named(path) {
		return json.Number(p)
	}
	if slices.ContainsFunc(path, func(name string) bool { return contents[name] }) && w.long.Replace(n.String()) != n.String() {
		return json.Number(fmt.Sprint(firstNumber + len(w.placeholders)))
	}
	return n
}

// text replaces values in a text, and in what it encodes.
func (w *words) text(s string) string { return w.within(s, 0) }

func (w *words) within(s string, depth int) string {
	if depth < maxEncoded {
		s = recode(s, func(inner string) string { return w.within(inner, depth+1) },
			func(raw []byte) ([]byte, error) { return w.json(inText, raw) })
	}
	for range 3 { // what was on both sides of a value may be one together
		replaced := w.long.Replace(s)
		if replaced == s {
			break
		}
		s = replaced
	}
	for _, v := range w.short {
		s = replaceWord(s, v, w.placeholders[v])
	}
	return s
}

// replaceWord replaces a value where no letter and no digit is beside it.
func replaceWord(s, value, placeholder string) string {
	var out strings.Builder
	for from := 0; ; {
		i := strings.Index(s[from:], value)
		if i < 0 {
			out.WriteString(s[from:])
			return out.String()
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(s[:i])
		after, _ := utf8.DecodeRuneInString(s[i+len(value):])
		out.WriteString(s[from:i])
		if isAlnum(before) || isAlnum(after) {
			out.WriteString(value)
		} else {
			out.WriteString(placeholder)
		}
		from = i + len(value)
	}
}

func isAlnum(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
