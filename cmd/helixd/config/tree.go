package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// kind is what a node of the file is, as JSON sees it.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindMapping
	kindSequence
)

// node is a value of the file, with aliases and merge keys resolved.
type node struct {
	line  int
	kind  kind
	text  string // a string; the JSON of a boolean or number
	pairs []pair // of a mapping, with unique keys
	items []*node
}

// pair is an entry of a mapping. line is its key's.
type pair struct {
	key   string
	line  int
	value *node
}

func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// jsonNumber is JSON's grammar of numbers.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// treeBuilder turns go-yaml's syntax tree into nodes.
type treeBuilder struct {
	file     string
	anchors  map[string]*node
	problems []problem
}

// parse reads a file of at most one document; an empty one is nil.
func parse(file string, data []byte) (*node, []problem) {
	parsed, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		at, text := origin{name: file}, "not YAML"
		if syntax, ok := errors.AsType[*yaml.SyntaxError](err); ok {
			// Its Error() would quote the file.
			at.line, text = syntax.Token.Position.Line, syntax.Message
		}
		return nil, []problem{{at: at, text: text}}
	}
	b := &treeBuilder{file: file, anchors: map[string]*node{}}
	var root *node
	for _, doc := range parsed.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			b.fail(lineOf(doc.Body), "", "only one document is allowed")
		default:
			root = b.build(doc.Body, "")
		}
	}
	return root, b.problems
}

func (b *treeBuilder) fail(line int, path, text string) {
	b.problems = append(b.problems, problem{at: origin{b.file, line}, path: path, text: text})
}

// build converts one value. A malformed one is reported and becomes null.
func (b *treeBuilder) build(n ast.Node, path string) *node {
	out := &node{line: lineOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.BoolNode:
		out.kind, out.text = kindBool, strconv.FormatBool(n.Value)
	case *ast.IntegerNode:
		out.kind, out.text = kindNumber, fmt.Sprint(n.Value)
	case *ast.FloatNode:
		out.kind, out.text = kindNumber, n.Token.Value
		if !jsonNumber.MatchString(out.text) {
			out.text = strconv.FormatFloat(n.Value, 'g', -1, 64)
		}
	case *ast.StringNode:
		out.kind, out.text = kindString, n.Value
		// go-yaml takes 1e3 and long integers for strings.
		if n.Token.Type == token.StringType && jsonNumber.MatchString(n.Value) {
			out.kind = kindNumber
		}
	case *ast.LiteralNode:
		out.kind, out.text = kindString, n.Value.Value
	case *ast.SequenceNode:
		out.kind = kindSequence
		for i, item := range n.Values {
			out.items = append(out.items, b.build(item, index(path, i)))
		}
	case ast.MapNode:
		out.kind = kindMapping
		b.mapping(out, n, path)
	case *ast.AnchorNode:
		out = b.build(n.Value, path)
		b.anchors[n.Name.GetToken().Value] = out
	case *ast.AliasNode:
		target, ok := b.anchors[n.Value.GetToken().Value]
		if !ok {
			b.fail(out.line, path, "unknown YAML anchor")
			return out
		}
		return target
	case *ast.InfinityNode, *ast.NanNode:
		b.fail(out.line, path, "must be a finite number")
	case *ast.TagNode:
		b.fail(out.line, path, "YAML tags are not supported")
	default:
		b.fail(out.line, path, "unexpected YAML")
	}
	return out
}

// mapping fills in a mapping's pairs: its own first, then those of its merge
// keys that it lacks.
func (b *treeBuilder) mapping(out *node, n ast.MapNode, path string) {
	var merged []pair
	for it := n.MapRange(); it.Next(); {
		key, line := it.Key(), lineOf(it.Key())
		if key.IsMergeKey() {
			merged = append(merged, b.merge(it.Value(), path)...)
			continue
		}
		if complex, ok := key.(*ast.MappingKeyNode); ok {
			if inner, ok := complex.Value.(ast.MapKeyNode); ok {
				key = inner
			}
		}
		name, ok := key.(*ast.StringNode)
		if !ok {
			b.fail(line, path, "keys must be strings")
			continue
		}
		keyPath := join(path, name.Value)
		if isSplit(it.KeyValue()) {
			b.fail(line, path, "put quotes around text with a colon, or a space after the colon")
			continue
		}
		if out.get(name.Value) != nil {
			b.fail(line, keyPath, "duplicate key")
			continue
		}
		out.pairs = append(out.pairs, pair{name.Value, line, b.build(it.Value(), keyPath)})
	}
	for _, p := range merged {
		if out.get(p.key) == nil {
			out.pairs = append(out.pairs, p)
		}
	}
}

// isSplit reports whether go-yaml took a plain text with a colon for a key and
// its value: within {}, it reads [env:NAME] as [{env: NAME}].
func isSplit(n *ast.MappingValueNode) bool {
	if n.Key.GetToken().Type != token.StringType {
		return false // after quotes, a colon needs no space
	}
	if _, ok := n.Value.(ast.ScalarNode); !ok {
		return false
	}
	colon, value := n.Start.Position, n.Value.GetToken().Position
	return colon.Line == value.Line && colon.Column+1 == value.Column && n.Value.Type() != ast.NullType
}

// merge returns the pairs that a merge key adds; the first of a list wins.
func (b *treeBuilder) merge(n ast.Node, path string) []pair {
	from := b.build(n, path)
	sources := []*node{from}
	if from.kind == kindSequence {
		sources = from.items
	}
	var pairs []pair
	for _, s := range sources {
		if s.kind != kindMapping {
			b.fail(lineOf(n), path, "only mappings can be merged")
			continue
		}
		pairs = slices.Concat(pairs, s.pairs)
	}
	return pairs
}

func lineOf(n ast.Node) int {
	if key, ok := n.(*ast.MappingKeyNode); ok {
		n = key.Value
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}
