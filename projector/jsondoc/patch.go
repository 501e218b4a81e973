package jsondoc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

var (
	errMissing    = errors.New("there is no such value")
	errIndex      = errors.New("there is no such index")
	errTest       = errors.New("the value is another one")
	errOperation  = errors.New("unknown operation")
	errNoValue    = errors.New("the operation has no value")
	errNoFrom     = errors.New("the operation has no from")
	errPath       = errors.New("the path is no JSON Pointer")
	errNested     = fmt.Errorf("more than %d arrays and objects in each other", MaxDepth)
	errNoDocument = errors.New("only an array or object can be the document")
)

// Patch applies RFC 6902 operations, all or none. It returns the new document and how
// much work the patch was, in bytes, also if it fails. Errors: what can't be
// applied; ErrTooMuchWork once that would be more than most; a document of more
// than MaxSize or MaxDepth, or one that is no object.
func (d Doc) Patch(ops []eventlog.PatchOp, most int64) (next Doc, work int64, err error) {
	return d.PatchUntil(context.Background(), ops, most)
}

// PatchUntil is Patch, but stops between two operations once ctx has ended. Its
// error is then the cause.
func (d Doc) PatchUntil(ctx context.Context, ops []eventlog.PatchOp, most int64) (next Doc, work int64, err error) {
	if len(ops) == 0 {
		return d, 0, nil
	}
	for i, op := range ops {
		if err := valid(op); err != nil {
			return d, 0, failed(i, op, err)
		}
	}
	p := &patcher{left: most}
	if p.root, err = d.load(); err != nil {
		return d, 0, err
	}
	p.before = p.root
	if next := p.root.opened(); next != nil {
		p.root = next.sealed()
	}
	for i, op := range ops {
		if ctx.Err() != nil {
			return d, most - max(p.left, 0), context.Cause(ctx)
		}
		if err := p.apply(op); err != nil {
			return d, most - max(p.left, 0), failed(i, op, err)
		}
	}
	work = most - p.left
	switch {
	case p.root.len() > MaxSize:
		return d, work, fmt.Errorf("the document would have more than %d bytes", MaxSize)
	case !(Doc{p.root}).IsObject():
		return d, work, errors.New("the document must stay an object")
	}
	return Doc{p.root}, work, nil
}

func failed(i int, op eventlog.PatchOp, err error) error {
	const most = 256 // of a path that is shown
	path := op.Path
	if len(path) > most {
		path = strings.ToValidUTF8(path[:most], "") + "..."
	}
	return fmt.Errorf("operation %d (%s %q): %w", i, op.Op, path, err)
}

func valid(op eventlog.PatchOp) error {
	switch op.Op {
	case "add", "replace":
		if len(op.Value) == 0 {
			return errNoValue
		}
	case "move", "copy":
		if op.From == nil {
			return errNoFrom
		}
	case "remove", "test":
	default:
		return errOperation
	}
	return nil
}

// patcher is a patch that is being applied.
type patcher struct {
	root *node
	// before is the document that the first operation, or the last one that
	// added a whole document, began with. Nil: one has replaced it.
	before *node
	atRoot bool  // the array or object that is looked at is the document
	left   int64 // work
	copied int
}

func (p *patcher) spend(n int) error {
	if p.left -= int64(n); p.left < 0 {
		return ErrTooMuchWork
	}
	return nil
}

// Work of an operation, in bytes: for each array or object on its path
// workStep, the run in it, its share of the list of runs, and of an object a byte
// for each key, and its longest key if that is large, since a run is as long as its
// longest element; for its value; and for what a test compares, by each level of
// nesting.
const (
	workStep  = 512
	workRun   = 8 << 10
	workShare = 128
	workWide  = 2
	workValue = 2
	workTest  = 8
)

// pass counts an array or object on the path of an operation.
func (p *patcher) pass(n *node) error {
	keys := 0
	if n.object {
		keys = n.count
	}
	return p.spend(workStep + min(n.len(), workRun) + n.len()/workShare + keys + workWide*n.wide)
}

func (p *patcher) apply(op eventlog.PatchOp) error {
	switch op.Op {
	case "add":
		v, err := p.value(op.Value)
		if err != nil {
			return err
		}
		if op.Path == "" {
			p.before = v
			return p.whole(v)
		}
		return p.add(op.Path, v)
	case "replace":
		v, err := p.value(op.Value)
		if err != nil {
			return err
		}
		if op.Path == "" {
			p.before = nil
			return p.whole(v)
		}
		return p.change(op.Path, v.nesting(), func(n *node, token string) (*node, error) {
			if _, err := p.get(n, token); err != nil {
				return nil, err
			}
			return n.set(token, v)
		})
	case "remove":
		return p.change(op.Path, 0, (*node).remove)
	case "move":
		if *op.From == "" {
			return errors.New("the whole document can't be moved")
		}
		v, err := p.read(*op.From)
		if err != nil {
			return err
		}
		if err := p.change(*op.From, 0, (*node).remove); err != nil {
			return err
		}
		return p.add(op.Path, v)
	case "copy":
		v, err := p.read(*op.From)
		if err != nil {
			return err
		}
		if p.copied += v.len(); p.copied > MaxSize {
			return fmt.Errorf("the patch copies more than %d bytes", MaxSize)
		}
		if err := p.spend(workValue * v.len()); err != nil {
			return err
		}
		return p.add(op.Path, v)
	}
	return p.test(op)
}

// value reads the value of an operation.
func (p *patcher) value(text json.RawMessage) (*node, error) {
	if err := p.spend(workValue * len(text)); err != nil {
		return nil, err
	}
	compact, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("the value: %w", err)
	}
	return parse(compact), nil
}

// whole takes a value for the document.
func (p *patcher) whole(v *node) error {
	if v.null() { // which another operation must replace
		p.root = v
		return nil
	}
	n := v.opened()
	if n == nil {
		return errNoDocument
	}
	p.root = n.sealed()
	return p.nested(0, n.nesting())
}

func (p *patcher) nested(above, depth int) error {
	if above+depth > MaxDepth {
		return errNested
	}
	return nil
}

func (p *patcher) add(path string, v *node) error {
	return p.change(path, v.nesting(), func(n *node, token string) (*node, error) { return n.add(token, v) })
}

// tokens splits a path. The first one is of the document itself.
func tokens(path string) ([]string, error) {
	if path == "" {
		return []string{""}, nil
	}
	_, rest, found := strings.Cut(path, "/")
	if !found {
		return nil, errPath
	}
	return strings.Split(rest, "/"), nil
}

var unescaped = strings.NewReplacer("~1", "/", "~0", "~")

// change replaces the array or object that holds what a path names. Depth is how
// deep the value is that comes into it.
func (p *patcher) change(path string, depth int, f func(n *node, token string) (*node, error)) error {
	rest, err := tokens(path)
	if err != nil {
		return err
	}
	if err := p.nested(len(rest), depth); err != nil {
		return err
	}
	from := &p.root
	if len(rest) > 1 && rest[0] == "" {
		if from, rest = &p.before, rest[1:]; *from == nil {
			return errMissing
		}
	}
	p.atRoot = from == &p.root && len(rest) == 1
	next, err := p.descend(*from, rest, f)
	if err == nil {
		*from = next
	}
	return err
}

func (p *patcher) descend(n *node, rest []string, f func(n *node, token string) (*node, error)) (*node, error) {
	held := n.opened()
	if held == nil {
		return nil, errMissing
	}
	if err := p.pass(held); err != nil {
		return nil, err
	}
	token := unescaped.Replace(rest[0])
	if len(rest) == 1 {
		next, err := f(held, token)
		if err != nil {
			return nil, err
		}
		return next.sealed(), nil
	}
	index, err := held.index(token)
	if err != nil || token == "" {
		return nil, errMissing
	}
	child, err := p.descend(held.at(index), rest[1:], f)
	if err != nil {
		return nil, err
	}
	return held.put(index, token, child).sealed(), nil
}

// read returns what a path names.
func (p *patcher) read(path string) (v *node, err error) {
	err = p.change(path, 0, func(n *node, token string) (*node, error) {
		v, err = p.get(n, token)
		return n, err
	})
	return v, err
}

var null = &node{raw: []byte("null")}

// get returns the element that a token names. The empty token names the whole
// document before the patch in it, and null elsewhere.
func (p *patcher) get(n *node, token string) (*node, error) {
	if token == "" {
		if p.before != nil && p.atRoot {
			return p.before, nil
		}
		return null, nil
	}
	index, err := n.index(token)
	if err != nil {
		return nil, err
	}
	return n.at(index), nil
}

// index returns where the element is that a token names.
func (n *node) index(token string) (int, error) {
	if n.object {
		if index := n.find(quote(token)); index >= 0 {
			return index, nil
		}
		return 0, errMissing
	}
	index, err := strconv.Atoi(token)
	if err != nil || index < 0 || index >= n.count {
		return 0, errIndex
	}
	return index, nil
}

// put replaces the element with an index, which has the given key in an object.
func (n *node) put(index int, key string, v *node) *node {
	return n.splice(index, true, n.key(key), v)
}

// key returns how a member begins.
func (n *node) key(token string) []byte {
	if !n.object {
		return nil
	}
	return append(quote(token), ':')
}

func (n *node) set(token string, v *node) (*node, error) {
	index, err := n.index(token)
	switch {
	case err == nil:
		return n.put(index, token, v), nil
	case n.object:
		return n.splice(n.count, false, n.key(token), v), nil
	}
	return nil, err
}

func (n *node) add(token string, v *node) (*node, error) {
	if n.object {
		return n.set(token, v)
	}
	if token == "-" {
		return n.splice(n.count, false, nil, v), nil
	}
	index, err := strconv.Atoi(token)
	if err != nil || index < 0 || index > n.count {
		return nil, errIndex
	}
	return n.splice(index, false, nil, v), nil
}

func (n *node) remove(token string) (*node, error) {
	index, err := n.index(token)
	if err != nil {
		return nil, err
	}
	return n.splice(index, true, nil, nil), nil
}
