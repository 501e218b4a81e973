package httpapi_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

const schemaRef = "#/components/schemas/"

// combiners are the keywords whose schemas judge the same value together.
var combiners = []string{"oneOf", "anyOf", "allOf"}

// eachSchema calls visit with a schema and with those that it is made of. own
// says which of them judge a value by themselves; the others judge it together
// with the schema that they stand in.
func eachSchema(s apiSchema, own bool, visit func(s apiSchema, own bool)) {
	visit(s, own)
	properties, _ := s["properties"].(apiSchema)
	for _, inner := range properties {
		eachSchema(inner.(apiSchema), true, visit)
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if inner, ok := s[name].(apiSchema); ok {
			eachSchema(inner, true, visit)
		}
	}
	for _, name := range combiners {
		all, _ := s[name].([]any)
		for _, inner := range all {
			eachSchema(inner.(apiSchema), false, visit)
		}
	}
}

// target returns the schema that a schema refers to, or nil.
func (d *apiDocument) target(s apiSchema) apiSchema {
	ref, _ := s["$ref"].(string)
	return d.Components.Schemas[strings.TrimPrefix(ref, schemaRef)]
}

// members returns the names of the members that a schema describes.
func (d *apiDocument) members(s apiSchema) (names []string) {
	properties, _ := s["properties"].(apiSchema)
	for name := range properties {
		names = append(names, name)
	}
	if target := d.target(s); target != nil {
		names = append(names, d.members(target)...)
	}
	for _, name := range combiners {
		all, _ := s[name].([]any)
		for _, inner := range all {
			names = append(names, d.members(inner.(apiSchema))...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// strict returns a schema as the tests see it: what describes some members of
// an object allows no others, unless it says so.
func (d *apiDocument) strict(t *testing.T, s apiSchema, own bool) apiSchema {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	var closed apiSchema
	require.NoError(t, json.Unmarshal(raw, &closed))
	eachSchema(closed, own, func(s apiSchema, own bool) {
		if own && len(d.members(s)) > 0 {
			s["unevaluatedProperties"] = false
		}
	})
	eachSchema(closed, own, func(s apiSchema, _ bool) {
		if ref, ok := s["$ref"].(string); ok {
			s["$ref"] = strings.Replace(ref, schemaRef, "#/$defs/", 1)
		}
	})
	return closed
}

// validate holds a value, as JSON, against one of the document's schemas.
func (d *apiDocument) validate(s apiSchema, raw []byte) (value any, err error) {
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	if err := d.checked.Validate(apiSchema{keyOf(s): value}); err != nil {
		return nil, fmt.Errorf("%.2000s: %w", raw, err)
	}
	return value, nil
}

// compile makes one schema of all, since resolving takes its time: an object
// whose members' values must be valid, each by one of them.
func (d *apiDocument) compile(t *testing.T) {
	t.Helper()
	defs, all := apiSchema{}, apiSchema{}
	for name, s := range d.Components.Schemas {
		defs[name] = d.strict(t, s, false)
	}
	for _, s := range d.schemas() {
		all[keyOf(s)] = d.strict(t, s, true)
	}
	raw, err := json.Marshal(apiSchema{"$defs": defs, "properties": all, "additionalProperties": false})
	require.NoError(t, err)
	var root jsonschema.Schema
	require.NoError(t, json.Unmarshal(raw, &root))
	d.checked, err = root.Resolve(nil)
	require.NoError(t, err)
}

// keyOf tells schemas apart.
func keyOf(s apiSchema) string {
	raw, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(raw))[:8]
}
