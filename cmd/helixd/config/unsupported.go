package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// unsupported are the keys whose feature this version lacks: set to anything
// but the default, they are refused. A version that has the feature deletes
// the row.
var unsupported = []struct {
	key     string   // a key path; * is any key of a map
	allowed []string // besides the default
}{
	{key: "nats.partitions", allowed: []string{"1"}},
	{key: "nats.cluster"},
}

// checkUnsupported reports the keys of the table that are set.
func (k *checker) checkUnsupported() {
	for _, row := range unsupported {
		eachMatch(reflect.ValueOf(k.config).Elem(), reflect.ValueOf(Default()).Elem(),
			strings.Split(row.key, "."), "", func(path string, v, def reflect.Value) {
				text := textOf(v)
				switch {
				case slices.Contains(row.allowed, text):
				case same(v, def):
				default:
					k.problems = append(k.problems, problem{
						at: k.config.setterOf(path), path: path, text: "not supported by this version"})
				}
			})
	}
}

// eachMatch visits the values at a pattern, with their defaults.
func eachMatch(v, def reflect.Value, keys []string, path string, visit func(path string, v, def reflect.Value)) {
	if len(keys) == 0 {
		visit(path, v, def)
		return
	}
	if keys[0] != "*" {
		field, ok := fieldOf(v, keys[0])
		if !ok {
			panic("config: the unsupported table has an unknown key: " + join(path, keys[0]))
		}
		defField, _ := fieldOf(def, keys[0])
		eachMatch(field, defField, keys[1:], join(path, keys[0]), visit)
		return
	}
	for name, elem := range v.Seq2() {
		eachMatch(elem, newElem(elem.Type()), keys[1:], join(path, name.String()), visit)
	}
}

// same compares values; no list is an empty one.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	case reflect.Struct:
		if a.Type() == secretType {
			break
		}
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}

// textOf is a scalar, or free JSON, as text.
func textOf(v reflect.Value) string {
	if raw, ok := v.Interface().(json.RawMessage); ok {
		return string(raw)
	}
	return fmt.Sprint(v.Interface())
}

// setterOf is who set the key: a variable or flag that set something beneath
// it, or else originOf.
func (c *Config) setterOf(path string) origin {
	var found []string
	for p, o := range c.origins {
		if within(p, path) && o.line == 0 {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return c.originOf(path)
	}
	return c.origins[slices.Min(found)]
}
