package httpapi_test

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
)

// apiDocument is the OpenAPI document. It may have no other members than these.
type apiDocument struct {
	OpenAPI    string                  `json:"openapi"`
	Dialect    string                  `json:"jsonSchemaDialect"`
	Info       map[string]any          `json:"info"`
	Security   []map[string][]string   `json:"security"`
	Tags       []apiTag                `json:"tags"`
	Paths      map[string]*apiPathItem `json:"paths"`
	Components struct {
		SecuritySchemes map[string]any           `json:"securitySchemes"`
		Parameters      map[string]*apiParameter `json:"parameters"`
		Responses       map[string]*apiResponse  `json:"responses"`
		Schemas         map[string]apiSchema     `json:"schemas"`
	} `json:"components"`

	checked *jsonschema.Resolved // see compile
}

type (
	apiTag struct {
		Name, Description string
	}
	apiPathItem struct {
		Parameters []*apiParameter `json:"parameters"`
		Get        *apiOperation   `json:"get"`
		Post       *apiOperation   `json:"post"`
		Delete     *apiOperation   `json:"delete"`
	}
	apiOperation struct {
		ID          string                  `json:"operationId"`
		Helix       string                  `json:"x-helix-operation"`
		Tags        []string                `json:"tags"`
		Summary     string                  `json:"summary"`
		Description string                  `json:"description"`
		Security    *[]map[string][]string  `json:"security"`
		Parameters  []*apiParameter         `json:"parameters"` // with the path's
		Body        *apiBody                `json:"requestBody"`
		Responses   map[string]*apiResponse `json:"responses"`

		method, path string
	}
	apiParameter struct {
		Ref         string    `json:"$ref"`
		Name        string    `json:"name"`
		In          string    `json:"in"`
		Required    bool      `json:"required"`
		Description string    `json:"description"`
		Schema      apiSchema `json:"schema"`
	}
	apiBody struct {
		Required bool                 `json:"required"`
		Content  map[string]*apiMedia `json:"content"`
	}
	apiResponse struct {
		Ref         string                   `json:"$ref"`
		Description string                   `json:"description"`
		Headers     map[string]*apiParameter `json:"headers"`
		Content     map[string]*apiMedia     `json:"content"`
	}
	// apiMedia has the schema of the whole or, of a stream, that of its items.
	apiMedia struct {
		Schema apiSchema `json:"schema"`
		Items  apiSchema `json:"x-helix-items"`
	}
	apiSchema = map[string]any
)

// readOpenAPI returns the document as a server answers with it, with its
// references to parameters and responses resolved.
func readOpenAPI(t *testing.T) *apiDocument {
	t.Helper()
	got := newAPIOn(t, memory.New(), nil).get("/openapi.json")
	require.Equal(t, 200, got.status, got.body)
	doc := new(apiDocument)
	d := json.NewDecoder(strings.NewReader(got.body))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(doc))
	for path, item := range doc.Paths {
		for method, op := range map[string]*apiOperation{"GET": item.Get, "POST": item.Post, "DELETE": item.Delete} {
			if op == nil {
				continue
			}
			op.method, op.path = method, path
			op.Parameters = slices.Concat(item.Parameters, op.Parameters)
			for i, p := range op.Parameters {
				if p.Ref != "" {
					op.Parameters[i] = component(t, doc.Components.Parameters, "parameters", p.Ref)
				}
			}
			for status, r := range op.Responses {
				if r.Ref != "" {
					op.Responses[status] = component(t, doc.Components.Responses, "responses", r.Ref)
				}
			}
		}
	}
	doc.compile(t)
	return doc
}

// operations yields all operations, sorted.
func (d *apiDocument) operations() iter.Seq[*apiOperation] {
	return func(yield func(*apiOperation) bool) {
		for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
			item := d.Paths[path]
			for _, op := range []*apiOperation{item.Get, item.Post, item.Delete} {
				if op != nil && !yield(op) {
					return
				}
			}
		}
	}
}

func component[T any](t *testing.T, all map[string]*T, kind, ref string) *T {
	t.Helper()
	name, ok := strings.CutPrefix(ref, "#/components/"+kind+"/")
	require.True(t, ok && all[name] != nil, "there is no %s", ref)
	return all[name]
}

// schemas returns the schemas of all parameters, bodies and answers.
func (d *apiDocument) schemas() (all []apiSchema) {
	content := func(of map[string]*apiMedia) {
		for _, m := range of {
			all = append(all, m.Schema)
			if m.Items != nil {
				all = append(all, m.Items)
			}
		}
	}
	responses := func(of map[string]*apiResponse) {
		for _, r := range of {
			for _, h := range r.Headers {
				all = append(all, h.Schema)
			}
			content(r.Content)
		}
	}
	responses(d.Components.Responses)
	for op := range d.operations() {
		for _, p := range op.Parameters {
			all = append(all, p.Schema)
		}
		if op.Body != nil {
			content(op.Body.Content)
		}
		responses(op.Responses)
	}
	return all
}
