package jsondoc

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// opened returns a value as an array or object of runs, the keys of which are
// written in one way. It returns n itself if it is that already, and nil if n is
// neither.
func (n *node) opened() *node {
	if n.raw != nil {
		if n.raw[0] != '{' && n.raw[0] != '[' {
			return nil
		}
		var runs []run
		object := n.raw[0] == '{'
		if text := n.raw[1 : len(n.raw)-1]; len(text) > 0 {
			runs = []run{textRun(text, object)}
		}
		n = list(object, runs)
	}
	if !n.object || n.plain {
		return n
	}
	if known := n.memo.Load(); known != nil {
		return known
	}
	runs := slices.Clone(n.runs)
	for i := range runs {
		if r := &runs[i]; r.child != nil {
			*r = childRun(append(plainKey(r.text[:len(r.text)-1]), ':'), r.child)
		} else if !isPlain(r.text) {
			*r = textRun(plainKeys(r.text), true)
		}
	}
	next := list(true, runs).once()
	next.plain = true
	n.memo.Store(next)
	return next
}

// isPlain reports whether all keys of a text are surely written in the one way.
func isPlain(text []byte) bool {
	return bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) && !bytes.Contains(text, []byte("\u2028")) && !bytes.Contains(text, []byte("\u2029"))
}

func plainKeys(text []byte) []byte {
	var out []byte
	for i := 0; i < len(text); {
		e := elementAt(text, i, true)
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, plainKey(text[e.from:e.value-1])...), ':'), text[e.value:e.to]...)
		i = e.to + 1
	}
	return out
}

func plainKey(key []byte) []byte {
	if isPlain(key) {
		return slices.Clip(key)
	}
	var s string
	_ = json.Unmarshal(key, &s) // it was valid
	return quote(s)
}

const hex = "0123456789abcdef"

// quote writes a key.
func quote(s string) []byte {
	out := append(make([]byte, 0, len(s)+3), '"')
	for _, c := range s { // an invalid byte is U+FFFD
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', byte(c))
		case c == '\n':
			out = append(out, `\n`...)
		case c == '\r':
			out = append(out, `\r`...)
		case c == '\t':
			out = append(out, `\t`...)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		case c == '\u2028' || c == '\u2029':
			out = append(out, '\\', 'u', '2', '0', '2', hex[c&15])
		default:
			out = utf8.AppendRune(out, c)
		}
	}
	return append(out, '"')
}

// once returns an object with one member a key: the first, with the value of
// the last.
func (n *node) once() *node {
	all := make([]uint32, 0, n.count)
	for i := range n.runs {
		all = append(all, n.runs[i].hashes...)
	}
	slices.Sort(all)
	twice := map[uint32]bool{} // some keys have the same hash and are different
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			twice[all[i]] = true
		}
	}
	values, members := map[string]*node{}, 0
	if len(twice) > 0 {
		n.members(func(key []byte, v *node) {
			if twice[hash(key)] {
				values[string(key)] = v
				members++
			}
		})
	}
	if len(values) == members {
		return n
	}
	text := []byte{'{'}
	n.members(func(key []byte, v *node) {
		if last, known := values[string(key)]; known {
			if last == nil { // written
				return
			}
			v, values[string(key)] = last, nil
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = v.appendTo(append(append(text, key...), ':'))
	})
	text = append(text, '}')
	if next := parse(text); next.raw == nil {
		return next
	}
	return list(true, []run{textRun(text[1:len(text)-1], true)})
}

// members calls f with the members of an object.
func (n *node) members(f func(key []byte, v *node)) {
	for i := range n.runs {
		r := &n.runs[i]
		if r.child != nil {
			f(r.text[:len(r.text)-1], r.child)
			continue
		}
		for from := 0; from < len(r.text); {
			e := elementAt(r.text, from, true)
			f(r.text[e.from:e.value-1], &node{raw: r.text[e.value:e.to:e.to]})
			from = e.to + 1
		}
	}
}
