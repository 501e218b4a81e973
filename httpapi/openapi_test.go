package httpapi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// TestOpenAPIRoutes: each route is described, as the operation that callers are
// allowed it by, and nothing else is.
func TestOpenAPIRoutes(t *testing.T) {
	t.Parallel()
	doc := readOpenAPI(t)
	want, got := map[string]string{}, map[string]string{}
	for _, rt := range httpapi.Routes() {
		want[rt.Method+" "+rt.Pattern] = string(rt.Operation)
	}
	for op := range doc.operations() {
		got[op.method+" "+op.path] = op.Helix
		public := op.Security != nil && len(*op.Security) == 0
		require.Equal(t, op.Helix == "", public, "%s: what has no operation needs no authentication", op.ID)
		require.Equal(t, public, op.Responses["default"] == nil, "%s: what can befall any request", op.ID)
	}
	require.Equal(t, want, got)
	require.Equal(t, []map[string][]string{{"bearer": {}}}, doc.Security)
}

// TestOpenAPIErrors: the codes of the document are those of the server, with
// the statuses that they come with.
func TestOpenAPIErrors(t *testing.T) {
	t.Parallel()
	doc := readOpenAPI(t)
	described := map[string][]int{}
	for _, row := range doc.Components.Schemas["ErrorCode"]["oneOf"].([]any) {
		row := row.(apiSchema)
		for _, status := range row["x-helix-status"].([]any) {
			described[row["const"].(string)] = append(described[row["const"].(string)], int(status.(float64)))
		}
	}
	answered := map[string][]int{}
	for _, f := range httpapi.ErrorTable() {
		if code := string(f.Code); !slices.Contains(answered[code], f.Status) {
			answered[code] = append(answered[code], f.Status)
			slices.Sort(answered[code])
		}
	}
	require.Equal(t, answered, described)
	require.ElementsMatch(t, declaredCodes(t), slices.Collect(maps.Keys(described)))
}

// declaredCodes returns the constants of the type Code.
func declaredCodes(t *testing.T) (codes []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "api/errors.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
			code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			codes = append(codes, code)
		}
		return true
	})
	require.NotEmpty(t, codes)
	return codes
}

// TestOpenAPIDocument: the document is well-formed, and says of everything what
// it is.
func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	doc := readOpenAPI(t)
	require.Regexp(t, `^3\.1\.`, doc.OpenAPI)
	var tags, ids []string
	for _, tag := range doc.Tags {
		tags = append(tags, tag.Name)
	}
	for op := range doc.operations() {
		require.NotContains(t, ids, op.ID)
		ids = append(ids, op.ID)
		require.NotEmpty(t, op.Summary, op.ID)
		require.Subset(t, tags, op.Tags, op.ID)
		require.Len(t, op.Tags, 1, op.ID)
		require.Equal(t, op.method == "POST", op.Body != nil, op.ID)
		inPath := 0
		for _, p := range op.Parameters {
			require.NotEmpty(t, p.Name, op.ID)
			require.NotEmpty(t, p.Schema, op.ID)
			if p.In == "path" {
				require.True(t, p.Required && strings.Contains(op.path, "{"+p.Name+"}"), op.ID)
				inPath++
			}
		}
		require.Equal(t, strings.Count(op.path, "{"), inPath, op.ID)
		for status, r := range op.Responses {
			require.NotEmpty(t, r.Description, "%s %s", op.ID, status)
		}
	}
}

// keywords are those that schemas here are made of.
var keywords = strings.Fields(`$ref type enum const description title default examples minimum maximum minLength maxLength
	pattern format contentEncoding minItems maxItems minProperties required properties additionalProperties items oneOf anyOf allOf
	x-helix-status`)

// TestOpenAPISchemas: schemas can be used, have no other keywords than those
// that are meant, and none is there for nothing.
func TestOpenAPISchemas(t *testing.T) {
	t.Parallel()
	doc := readOpenAPI(t)
	used := map[string]bool{}
	check := func(s apiSchema, own bool) {
		for word := range s {
			require.Contains(t, keywords, word, "%v", s)
		}
		if ref, ok := s["$ref"].(string); ok {
			require.NotNil(t, doc.target(s), ref)
			used[strings.TrimPrefix(ref, schemaRef)] = true
		}
		if members := doc.members(s); own && len(members) > 0 {
			require.Subset(t, members, schemaWords(s["required"]))
		}
	}
	for _, s := range doc.schemas() {
		eachSchema(s, true, check)
	}
	for _, s := range doc.Components.Schemas {
		eachSchema(s, true, check)
	}
	for name := range doc.Components.Schemas {
		require.True(t, used[name], "nothing has the schema %s", name)
	}
}

func schemaWords(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, item.(string))
	}
	return all
}

// TestOpenAPIChunks: the chunks of the document are those that there are, and
// that outside producers may write.
func TestOpenAPIChunks(t *testing.T) {
	t.Parallel()
	doc := readOpenAPI(t)
	typeOf := func(schema string) apiSchema {
		return doc.Components.Schemas[schema]["properties"].(apiSchema)["type"].(apiSchema)
	}
	require.ElementsMatch(t, eventlog.ChunkTypes(), schemaWords(typeOf("StreamChunk")["examples"]))
	mayWrite := slices.DeleteFunc(eventlog.ChunkTypes(), eventlog.RuntimeOnly)
	require.ElementsMatch(t, mayWrite, schemaWords(typeOf("ProducedChunk")["enum"]))
}

// TestOpenAPI: the document is served.
func TestOpenAPI(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	got := a.get("/openapi.json")
	require.Equal(t, 200, got.status)
	require.Equal(t, "application/json", got.header.Get("Content-Type"))
	require.Equal(t, 405, a.post("/openapi.json", "{}").status)
}
