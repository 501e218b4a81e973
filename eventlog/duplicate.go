package eventlog

import (
	"encoding/json"
	"strconv"
	"strings"
)

// member is a member of an object.
type member struct {
	name  string
	value json.RawMessage
}

// names are those of an object. A few of them are compared one by one.
type names struct {
	few  []string
	many map[string]struct{} // nil while there are few
}

const fewNames = 16

// add reports whether a name is new.
func (n *names) add(name string) bool {
	if n.many != nil {
		_, again := n.many[name]
		n.many[name] = struct{}{}
		return !again
	}
	for _, other := range n.few {
		if other == name {
			return false
		}
	}
	if n.few = append(n.few, name); len(n.few) > fewNames {
		n.many = make(map[string]struct{}, 2*len(n.few))
		for _, name := range n.few {
			n.many[name] = struct{}{}
		}
	}
	return true
}

// membersOf returns the members of an object, which is valid JSON without white space
// between tokens, and the path of the first name that an object within it has twice,
// or "". It goes through the bytes once. Values are parts of raw.
func membersOf(raw []byte) (all []member, duplicate string) {
	w := walker{raw: raw}
	all = make([]member, 0, fewNames/2)
	path, _ := w.object(func(name string, value []byte) { all = append(all, member{name, value}) })
	return all, path
}

// walker goes through JSON that is valid and has no white space between tokens.
type walker struct {
	raw []byte
	at  int
}

// value passes a value. The path, within the value, is that of the first name that
// is there twice, if one is.
func (w *walker) value() (path string, twice bool) {
	switch w.raw[w.at] {
	case '{':
		return w.object(nil)
	case '[':
		return w.array()
	case '"':
		w.passText()
		return "", false
	}
	for w.at++; w.at < len(w.raw); w.at++ { // a number or a literal
		if c := w.raw[w.at]; c == ',' || c == '}' || c == ']' {
			break
		}
	}
	return "", false
}

// object passes an object, and gives its members to take, if that is not nil.
func (w *walker) object(take func(name string, value []byte)) (path string, twice bool) {
	var seen names
	for w.at++; w.raw[w.at] != '}'; {
		if w.raw[w.at] == ',' {
			w.at++
		}
		name := w.text()
		if !twice && !seen.add(name) {
			path, twice = name, true
		}
		w.at++ // the colon
		from := w.at
		if inner, found := w.value(); found && !twice {
			path, twice = within(name, inner), true
		}
		if take != nil {
			take(name, w.raw[from:w.at:w.at])
		}
	}
	w.at++
	return path, twice
}

// maxPath is from how many bytes on a path is not made longer: each level of a deeply nested
// value would copy it once more.
const maxPath = 1 << 10

// within is a path within the value that outer names.
func within(outer, inner string) string {
	switch {
	case len(inner) > maxPath:
		return inner
	case strings.HasPrefix(inner, "["):
		return outer + inner
	}
	return outer + "." + inner
}

// array passes an array.
func (w *walker) array() (path string, twice bool) {
	w.at++
	for i := 0; w.raw[w.at] != ']'; i++ {
		if w.raw[w.at] == ',' {
			w.at++
		}
		if inner, found := w.value(); found && !twice {
			path, twice = within("["+strconv.Itoa(i)+"]", inner), true
		}
	}
	w.at++
	return path, twice
}

// text passes a string and returns what it says.
func (w *walker) text() string {
	from := w.at
	if !w.passText() {
		return string(w.raw[from+1 : w.at-1])
	}
	var s string
	_ = json.Unmarshal(w.raw[from:w.at], &s) // it is valid
	return s
}

func (w *walker) passText() (escaped bool) {
	for w.at++; w.raw[w.at] != '"'; w.at++ {
		if w.raw[w.at] == '\\' {
			escaped = true
			w.at++
		}
	}
	w.at++
	return escaped
}
