package jsondoc

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// test compares the value at a path. That there is none is the same as null.
func (p *patcher) test(op eventlog.PatchOp) error {
	want := null
	if len(op.Value) > 0 {
		var err error
		if want, err = p.value(op.Value); err != nil {
			return err
		}
	}
	got := p.root
	if op.Path != "" {
		var absent bool
		err := p.change(op.Path, 0, func(n *node, token string) (_ *node, err error) {
			got, err = p.get(n, token)
			if absent = err == errMissing; absent {
				got, err = null, nil
			}
			return n, err
		})
		if err != nil {
			return err
		}
	}
	if got.null() || want.null() {
		if got.null() && want.null() {
			return nil
		}
		return errTest
	}
	if err := p.spend(workTest * (1 + max(got.nesting(), want.nesting())) * (got.len() + want.len())); err != nil {
		return err
	}
	if !equal(got.appendTo(nil), want.appendTo(nil)) {
		return errTest
	}
	return nil
}

// equal reports whether two texts are the same value: objects with the same
// members in any order, arrays without null, the same strings, and other values that are
// written alike.
func equal(a, b []byte) bool {
	if a[0] != b[0] {
		return false
	}
	switch a[0] {
	case '"':
		return decoded(a) == decoded(b)
	case '[':
		i, k := 1, 1
		for a[i] != ']' && b[k] != ']' {
			x, y := elementAt(a, i, false), elementAt(b, k, false)
			v, w := a[x.value:x.to], b[y.value:y.to]
			if string(v) == "null" || !equal(v, w) {
				return false
			}
			i, k = after(a, x.to), after(b, y.to)
		}
		return a[i] == b[k]
	case '{':
		x, y := membersOf(a), membersOf(b)
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if x[i].key != y[i].key || !equal(x[i].value, y[i].value) {
				return false
			}
		}
		return true
	}
	return string(a) == string(b)
}

// after returns where the next element begins, or the list ends.
func after(b []byte, i int) int {
	if b[i] == ',' {
		return i + 1
	}
	return i
}

func decoded(text []byte) (s string) {
	if isPlain(text) {
		return string(text[1 : len(text)-1])
	}
	_ = json.Unmarshal(text, &s) // it is valid
	return s
}

type member struct {
	key   string
	value []byte
}

// membersOf returns the members of an object by their keys, of several with one
// key the last.
func membersOf(b []byte) []member {
	n := 0
	for i := 1; b[i] != '}'; n++ {
		i = after(b, elementAt(b, i, true).to)
	}
	members := make([]member, 0, n)
	for i := 1; b[i] != '}'; {
		e := elementAt(b, i, true)
		members = append(members, member{decoded(b[e.from : e.value-1]), b[e.value:e.to]})
		i = after(b, e.to)
	}
	slices.Reverse(members)
	slices.SortStableFunc(members, func(x, y member) int { return strings.Compare(x.key, y.key) })
	return slices.CompactFunc(members, func(x, y member) bool { return x.key == y.key })
}
