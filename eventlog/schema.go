package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// ParseChunk decodes a chunk of an outside producer strictly: it must have a known type,
// every required field, no other fields, the right JSON types and no null where the
// protocol has none (docs/reference/protocol.md#chunks). Names match exactly. A name that
// an object has twice is refused at any depth, since readers disagree about which one
// counts. White space between tokens is dropped. The error is a [*ValidationError] that
// names the field.
func ParseChunk(raw []byte) (Chunk, error) {
	if !utf8.Valid(raw) {
		return nil, &ValidationError{Reason: "is not valid UTF-8"}
	}
	var plain bytes.Buffer
	plain.Grow(len(raw))
	if err := json.Compact(&plain, raw); err != nil {
		return nil, &ValidationError{Reason: "is not a JSON object"}
	}
	raw = plain.Bytes()
	if raw[0] != '{' {
		return nil, &ValidationError{Reason: "is not a JSON object"}
	}
	fields, twice := membersOf(raw)
	var typ string
	for _, f := range fields {
		if f.name == "type" {
			typ = textOf(f.value) // the last one, as JSON readers do
		}
	}
	if typ == "" {
		return nil, &ValidationError{Field: "type", Reason: "must be a string that names a chunk type"}
	}
	row, ok := chunkTypes[typ]
	if !ok {
		return nil, &ValidationError{Field: "type", Reason: fmt.Sprintf("%q is not a chunk type", typ)}
	}
	if twice != "" {
		return nil, &ValidationError{Type: typ, Field: twice, Reason: "is given twice"}
	}
	fields = slices.DeleteFunc(fields, func(f member) bool { return f.name == "type" })
	c := row()
	if err := checkObject(reflect.TypeOf(c).Elem(), fields, ""); err != nil {
		err.Type = typ
		return nil, err
	}
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, &ValidationError{Type: typ, Reason: err.Error()}
	}
	if err := validateChunk(c); err != nil {
		return nil, err
	}
	return c, nil
}

// field is what the checks know of a struct field, read from its tags: `omitempty` makes
// it optional, a pointer without omitempty nullable, json.RawMessage takes any value,
// `helix:"object"` only an object. checker.fields has the other rules of the tag helix.
type field struct {
	name               string
	optional, nullable bool
	rule               string // the tag helix; of json.RawMessage, ruleJSON without one
	index              []int
	elem               reflect.Type // of a nested struct, or of a slice's structs
	slice              bool
	leaf               reflect.Type // of a string, a boolean or a number
}

// Rules of fields.
const (
	ruleJSON   = "json"
	ruleObject = "object"
)

// schema has the fields of a struct, sorted by their names.
type schema struct {
	fields []field
	ruled  []field // those with a rule, or with fields of their own
}

var schemas sync.Map // reflect.Type -> *schema

func schemaOf(t reflect.Type) *schema {
	if s, ok := schemas.Load(t); ok {
		return s.(*schema)
	}
	s := new(schema)
	for _, sf := range reflect.VisibleFields(t) {
		tag, ok := sf.Tag.Lookup("json")
		if !ok {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		f := field{name: name, optional: strings.Contains(opts, "omitempty"), rule: sf.Tag.Get("helix"), index: sf.Index}
		ft := sf.Type
		raw := ft == reflect.TypeFor[json.RawMessage]()
		if raw && f.rule == "" {
			f.rule = ruleJSON
		}
		f.nullable = f.rule == ruleJSON || ft.Kind() == reflect.Pointer && !f.optional
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Slice && !raw {
			f.slice, ft = true, ft.Elem()
		}
		switch {
		case ft.Kind() == reflect.Struct:
			f.elem = ft
		case !raw:
			f.leaf = ft
		}
		s.fields = append(s.fields, f)
	}
	slices.SortFunc(s.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for _, f := range s.fields {
		if f.rule != "" || f.elem != nil {
			s.ruled = append(s.ruled, f)
		}
	}
	schemas.Store(t, s)
	return s
}

func checkObject(t reflect.Type, got []member, path string) *ValidationError {
	schema := schemaOf(t).fields
	known := 0
	for _, f := range schema {
		i := slices.IndexFunc(got, func(m member) bool { return m.name == f.name })
		if i < 0 {
			if !f.optional {
				return &ValidationError{Field: path + f.name, Reason: "is required"}
			}
			continue
		}
		known++
		switch v := got[i].value; {
		case string(v) == "null":
			if !f.nullable {
				return &ValidationError{Field: path + f.name, Reason: "must not be null"}
			}
		case f.rule == ruleObject && !isObject(v):
			return &ValidationError{Field: path + f.name, Reason: "must be an object"}
		case f.elem != nil:
			if err := checkNested(f, v, path+f.name); err != nil {
				return err
			}
		case f.leaf != nil:
			if err := checkLeaf(f.leaf, v); err != nil {
				return &ValidationError{Field: path + f.name, Reason: mismatch(f.leaf, err)}
			}
		}
	}
	if known == len(got) { // no name is there twice
		return nil
	}
	unknown := ""
	for _, m := range got {
		if !slices.ContainsFunc(schema, func(f field) bool { return f.name == m.name }) && (unknown == "" || m.name < unknown) {
			unknown = m.name
		}
	}
	return &ValidationError{Field: path + unknown, Reason: "is not a field of this type"}
}

// checkLeaf returns why a value is none of the type.
func checkLeaf(want reflect.Type, raw json.RawMessage) error {
	switch want.Kind() {
	case reflect.String:
		if raw[0] == '"' {
			return nil
		}
	case reflect.Bool:
		if raw[0] == 't' || raw[0] == 'f' {
			return nil
		}
	case reflect.Int, reflect.Int64:
		if _, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return nil
		}
	}
	return json.Unmarshal(raw, reflect.New(want).Interface())
}

func checkNested(f field, raw json.RawMessage, path string) *ValidationError {
	items := []json.RawMessage{raw}
	if f.slice {
		items = nil // else it writes to raw
		if json.Unmarshal(raw, &items) != nil {
			return &ValidationError{Field: path, Reason: "must be an array"}
		}
	}
	for i, item := range items {
		at := path
		if f.slice {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		if item[0] != '{' {
			return &ValidationError{Field: at, Reason: "must be an object"}
		}
		obj, _ := membersOf(item)
		if err := checkObject(f.elem, obj, at+"."); err != nil {
			return err
		}
	}
	return nil
}

// textOf returns the text that a value is, or "" if it is none.
func textOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s)
	return s
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

func mismatch(want reflect.Type, err error) string {
	s := "must be an integer that fits"
	switch want.Kind() {
	case reflect.String:
		s = "must be a string"
	case reflect.Bool:
		s = "must be a boolean"
	}
	if te, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		s += ", not " + te.Value
	}
	return s
}
