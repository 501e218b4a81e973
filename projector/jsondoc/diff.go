package jsondoc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

const (
	// maxDiffWork is how much work a diff may be, in bytes that are compared at each
	// level of nesting. What differs beyond that is replaced as a whole.
	maxDiffWork = 1 << 30
	// maxChanges is from how many operations on an array or object takes another
	// one its place as a whole.
	maxChanges = 10_000
)

// Diff returns the operations that turn one JSON text into another: objects by
// their keys in order, arrays index by index. An array or object with more than
// 10,000 changes is replaced as a whole, and so is what would be too much work to
// compare. The values of the operations are parts of the texts. Errors: a text
// that is not JSON; ctx ends.
func Diff(ctx context.Context, before, after []byte) ([]eventlog.PatchOp, error) {
	texts := [2][]byte{before, after}
	for i, text := range texts {
		var b bytes.Buffer
		b.Grow(len(text))
		if err := json.Compact(&b, text); err != nil {
			return nil, fmt.Errorf("diff: %w", err)
		}
		texts[i] = b.Bytes()
	}
	d := differ{ctx: ctx, left: maxDiffWork, ops: []eventlog.PatchOp{}}
	err := d.diff(texts[0], texts[1])
	return d.ops, err
}

type differ struct {
	ctx  context.Context
	left int
	path []byte
	ops  []eventlog.PatchOp
}

func (d *differ) op(op string, value []byte) {
	d.ops = append(d.ops, eventlog.PatchOp{Op: op, Path: string(d.path), Value: value})
}

var escaped = strings.NewReplacer("~", "~0", "/", "~1")

// within calls f with the path of an element.
func (d *differ) within(token string, f func() error) error {
	n := len(d.path)
	d.path = append(append(d.path, '/'), token...)
	err := f()
	d.path = d.path[:n]
	return err
}

func (d *differ) diff(a, b []byte) error {
	if bytes.Equal(a, b) {
		return nil
	}
	d.left -= len(a) + len(b)
	if d.ctx.Err() != nil {
		return context.Cause(d.ctx)
	}
	from := len(d.ops)
	var err error
	switch {
	case d.left < 0:
		d.op("replace", b)
	case a[0] == '{' && b[0] == '{':
		err = d.objects(a, b)
	case a[0] == '[' && b[0] == '[':
		err = d.arrays(a, b)
	case a[0] == '"' && b[0] == '"' && decoded(a) == decoded(b):
	default:
		d.op("replace", b)
	}
	if d.tooMany(from) {
		clear(d.ops[from:])
		d.ops = d.ops[:from]
		d.op("replace", b)
	}
	return err
}

// tooMany reports whether a value whose first operation is the one at from has so many that
// it is replaced as a whole: it need not be compared further.
func (d *differ) tooMany(from int) bool { return len(d.ops)-from > maxChanges }

func (d *differ) objects(a, b []byte) error {
	from := len(d.ops)
	x, y := membersOf(a), membersOf(b)
	for (len(x) > 0 || len(y) > 0) && !d.tooMany(from) {
		var err error
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].key < y[0].key:
			err = d.within(escaped.Replace(x[0].key), func() error { d.op("remove", nil); return nil })
			x = x[1:]
		case len(x) == 0 || y[0].key < x[0].key:
			err = d.within(escaped.Replace(y[0].key), func() error { d.op("add", y[0].value); return nil })
			y = y[1:]
		default:
			err = d.within(escaped.Replace(x[0].key), func() error { return d.diff(x[0].value, y[0].value) })
			x, y = x[1:], y[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *differ) arrays(a, b []byte) error {
	from := len(d.ops)
	i, k, n := 1, 1, 0
	for ; a[i] != ']' && b[k] != ']' && !d.tooMany(from); n++ {
		x, y := elementAt(a, i, false), elementAt(b, k, false)
		if err := d.within(strconv.Itoa(n), func() error { return d.diff(a[x.from:x.to], b[y.from:y.to]) }); err != nil {
			return err
		}
		i, k = after(a, x.to), after(b, y.to)
	}
	token := strconv.Itoa(n)
	for a[i] != ']' && !d.tooMany(from) { // each one makes the next one the first that is too many
		i = after(a, elementAt(a, i, false).to)
		_ = d.within(token, func() error { d.op("remove", nil); return nil })
	}
	for b[k] != ']' && !d.tooMany(from) {
		y := elementAt(b, k, false)
		_ = d.within("-", func() error { d.op("add", b[y.from:y.to]); return nil })
		k = after(b, y.to)
	}
	return nil
}

// Same reports whether two JSON texts have the same value. Numbers are the same only if
// they are written alike.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var values [2]any
	for i, raw := range [][]byte{a, b} {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&values[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(values[0], values[1])
}
