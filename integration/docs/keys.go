package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
)

// Key is a key of helix.yaml.
type Key struct {
	Path string // such as agents.NAME.model.name
	Text string // what the code says of it
}

// Keys are all keys that a configuration may have: the fields of the struct
// root in a folder's package, and what their comments say.
func Keys(dir, root string) ([]Key, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	k := keys{structs: map[string]*ast.StructType{}}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if t, ok := n.(*ast.TypeSpec); ok {
				if s, ok := t.Type.(*ast.StructType); ok {
					k.structs[t.Name.Name] = s
				}
			}
			return true
		})
	}
	if k.structs[root] == nil {
		return nil, fmt.Errorf("there is no struct %s in %s", root, dir)
	}
	k.walk("", root)
	return k.out, nil
}

// unset is for readers of YAML, who know no nil.
var unset = strings.NewReplacer("nil:", "unset:", "nil or ", "unset or ")

type keys struct {
	structs map[string]*ast.StructType
	out     []Key
}

func (k *keys) walk(prefix, name string) {
	for _, field := range k.structs[name].Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
		if tag == "" || tag == "-" {
			continue
		}
		path := prefix + tag
		inner, suffix := elem(field.Type)
		text := sentences(field.Doc)
		if text == "" {
			text = sentences(field.Comment)
		}
		for _, verb := range []string{" is ", " are ", " says ", " say ", " "} { // the field's name is not the key's
			if after, ok := strings.CutPrefix(text, field.Names[0].Name+verb); ok {
				text = after
				break
			}
		}
		text = unset.Replace(text)
		before := len(k.out)
		if k.structs[inner] != nil {
			k.walk(path+suffix+".", inner)
		}
		if len(k.out) == before { // it has no keys of its own
			k.out = append(k.out, Key{path + suffix, text})
		}
	}
}

// elem is a type's name, and what is in a path for a key or an index.
func elem(t ast.Expr) (name, suffix string) {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name, ""
	case *ast.StarExpr:
		return elem(t.X)
	case *ast.MapType:
		name, _ = elem(t.Value)
		return name, ".NAME"
	case *ast.ArrayType:
		name, _ = elem(t.Elt)
		return name, "[]"
	}
	return "", ""
}

func sentences(group *ast.CommentGroup) string {
	return strings.Join(strings.Fields(group.Text()), " ")
}
