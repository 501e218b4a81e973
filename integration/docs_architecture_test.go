package integration_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	quoted = regexp.MustCompile("`([^`\n]+)`")
	// codePath is a file or a folder of the repository, such as eventlog/codec.go.
	codePath = regexp.MustCompile(`^[a-z]+(?:/[a-z0-9]+)*(?:/|/\w+\.go|/[a-z0-9]+)$`)
	// codeName is a package's folder and what it declares, such as
	// eventlog/jetstream.Log.Append.
	codeName = regexp.MustCompile(`^([a-z]+(?:/[a-z0-9]+)*)\.([A-Za-z]\w*(?:\.[A-Za-z]\w*)?)$`)
)

// The architecture's page names functions, files and folders that exist.
func TestDocsArchitecture(t *testing.T) {
	t.Parallel()
	const page = "docs/design/architecture.md"
	text, err := os.ReadFile("../" + page)
	require.NoError(t, err)
	packages := map[string]map[string]bool{}
	names := 0
	for _, token := range quoted.FindAllStringSubmatch(string(text), -1) {
		if codePath.MatchString(token[1]) {
			_, err := os.Stat("../" + token[1])
			assert.NoError(t, err, "%s names %s, which is gone", page, token[1])
			continue
		}
		found := codeName.FindStringSubmatch(token[1])
		if found == nil {
			continue
		}
		folder, name := found[1], found[2]
		if first, _, _ := strings.Cut(folder, "/"); !isFolder("../" + first) {
			continue // a NATS subject, for instance
		}
		names++
		if packages[folder] == nil {
			packages[folder] = declared(t, "../"+folder)
		}
		assert.True(t, packages[folder][name], "%s names %s.%s, which is gone or has another name", page, folder, name)
	}
	assert.Greater(t, names, 30, "the page follows a request and a chunk by the functions' names")
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// declared returns what a package declares, methods and fields as Type.Name; none
// if there is no such package.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				names[receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					declare(names, spec)
				}
			}
		}
	}
	return names
}

func declare(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var members *ast.FieldList
		switch of := s.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				names[s.Name.Name+"."+name.Name] = true
			}
		}
	}
}

// receiver returns a method's type with a dot; "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	on := d.Recv.List[0].Type
	if pointer, ok := on.(*ast.StarExpr); ok {
		on = pointer.X
	}
	if generic, ok := on.(*ast.IndexExpr); ok {
		on = generic.X
	}
	if name, ok := on.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}
