package eventlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"unicode/utf8"
)

// ParseChunk reads a chunk from outside strictly, as document 000's schemas
// do: a known type, every required field, no other fields, the right JSON
// types, no null where the schema has none. Names match exactly, and a name
// that an object has twice is refused at any depth, since readers disagree
// about which one holds. White space between tokens is dropped. The error is
// a [*ValidationError] that names the field.
func ParseChunk(raw []byte) (Chunk, error) {
	if !utf8.Valid(raw) {
		return nil, &ValidationError{Reason: "is not valid UTF-8"}
	}
	var plain bytes.Buffer
	if err := json.Compact(&plain, raw); err != nil {
		return nil, &ValidationError{Reason: "is not a JSON object"}
	}
	raw = plain.Bytes()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return nil, &ValidationError{Reason: "is not a JSON object"}
	}
	var typ string
	if err := json.Unmarshal(fields["type"], &typ); err != nil || typ == "" {
		return nil, &ValidationError{Field: "type", Reason: "must be a string that names a chunk type"}
	}
	row, ok := chunkTypes[typ]
	if !ok {
		return nil, &ValidationError{Field: "type", Reason: fmt.Sprintf("%q is not a chunk type", typ)}
	}
	delete(fields, "type")
	if path := duplicate(raw); path != "" {
		return nil, &ValidationError{Type: typ, Field: path, Reason: "is given twice"}
	}
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

// field is what the strict check knows of a struct field, read from its tags:
// `omitempty` makes it optional, a pointer without omitempty nullable,
// json.RawMessage takes any value, `helix:"object"` only an object.
type field struct {
	optional, nullable, object bool
	elem                       reflect.Type // of a nested struct, or of a slice's structs
	slice                      bool
	leaf                       reflect.Type // of a string, a boolean or a number
}

var schemas sync.Map // reflect.Type -> map[string]field

func schemaOf(t reflect.Type) map[string]field {
	if s, ok := schemas.Load(t); ok {
		return s.(map[string]field)
	}
	fields := map[string]field{}
	for _, sf := range reflect.VisibleFields(t) {
		tag, ok := sf.Tag.Lookup("json")
		if !ok {
			continue
		}
		name, opts, _ := strings.Cut(tag, ",")
		f := field{
			optional: strings.Contains(opts, "omitempty"),
			object:   sf.Tag.Get("helix") == "object",
		}
		ft := sf.Type
		raw := ft == reflect.TypeFor[json.RawMessage]()
		f.nullable = raw && !f.object || ft.Kind() == reflect.Pointer && !f.optional
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
		fields[name] = f
	}
	schemas.Store(t, fields)
	return fields
}

func checkObject(t reflect.Type, got map[string]json.RawMessage, path string) *ValidationError {
	schema := schemaOf(t)
	for _, name := range sortedKeys(schema) {
		f := schema[name]
		v, ok := got[name]
		switch {
		case !ok && !f.optional:
			return &ValidationError{Field: path + name, Reason: "is required"}
		case !ok:
			continue
		case string(v) == "null":
			if !f.nullable {
				return &ValidationError{Field: path + name, Reason: "must not be null"}
			}
		case f.object && !isObject(v):
			return &ValidationError{Field: path + name, Reason: "must be an object"}
		case f.elem != nil:
			if err := checkNested(f, v, path+name); err != nil {
				return err
			}
		case f.leaf != nil:
			if err := json.Unmarshal(v, reflect.New(f.leaf).Interface()); err != nil {
				return &ValidationError{Field: path + name, Reason: mismatch(f.leaf, err)}
			}
		}
	}
	for _, name := range sortedKeys(got) {
		if _, ok := schema[name]; !ok {
			return &ValidationError{Field: path + name, Reason: "is not a field of this type"}
		}
	}
	return nil
}

func checkNested(f field, raw json.RawMessage, path string) *ValidationError {
	items := []json.RawMessage{raw}
	if f.slice {
		if json.Unmarshal(raw, &items) != nil {
			return &ValidationError{Field: path, Reason: "must be an array"}
		}
	}
	for i, item := range items {
		at := path
		if f.slice {
			at = fmt.Sprintf("%s[%d]", path, i)
		}
		var obj map[string]json.RawMessage
		if json.Unmarshal(item, &obj) != nil || obj == nil {
			return &ValidationError{Field: at, Reason: "must be an object"}
		}
		if err := checkObject(f.elem, obj, at+"."); err != nil {
			return err
		}
	}
	return nil
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
