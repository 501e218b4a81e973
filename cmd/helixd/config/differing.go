package config

import "reflect"

// Differing returns the keys, in the schema's order, that have other values in
// another configuration. Of lists and maps it returns only their key: agents.
func (c *Config) Differing(other *Config) []string {
	return differing(reflect.ValueOf(c).Elem(), reflect.ValueOf(other).Elem(), "")
}

func differing(a, b reflect.Value, path string) []string {
	var keys []string
	for field, value := range a.Fields() {
		key := keyOf(field)
		if key == "" {
			continue
		}
		key = join(path, key)
		theirs := b.FieldByIndex(field.Index)
		switch {
		case value.Kind() == reflect.Struct && !isScalar(value.Type()):
			keys = append(keys, differing(value, theirs, key)...)
		case !same(value, theirs):
			keys = append(keys, key)
		}
	}
	return keys
}

// same takes a list or map that is there and empty for one that is not.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Slice, reflect.Map:
		if a.Len() == 0 && b.Len() == 0 {
			return true
		}
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
