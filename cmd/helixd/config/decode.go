package config

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
)

var rawType = reflect.TypeFor[json.RawMessage]()

// defaulter is a value of a list, a map or a pointer that has defaults.
type defaulter interface{ setDefaults() }

// shortener is a mapping that may be written as the value of one of its keys.
type shortener interface{ shortKey() string }

// decoder fills a Config in from a file's nodes, by the types' json tags.
type decoder struct {
	config     *Config
	file       string
	references references
	problems   []problem
}

// fail reports a problem unless the key already has one.
func (d *decoder) fail(n *node, path, text string) {
	if slices.ContainsFunc(d.problems, func(p problem) bool { return p.path == path }) {
		return
	}
	at := origin{d.file, n.line}
	if o, ok := d.config.origins[path]; ok {
		at = o // the key's line rather than the value's
	}
	d.problems = append(d.problems, problem{at: at, path: path, text: text})
}

// decode sets v from the node. A section may be null, as when all that it has
// is commented out: that leaves it as it is. A value may not:
// an operator who deleted a value does not expect the default, which may allow everything.
func (d *decoder) decode(v reflect.Value, n *node, path string) {
	if n.kind == kindNull {
		if !isSection(v.Type()) {
			d.fail(n, path, "has no value")
		}
		return
	}
	if v.Type() == rawType {
		v.SetBytes(n.json())
		return
	}
	if isScalar(v.Type()) {
		d.scalar(v, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		elem := newElem(v.Type().Elem())
		d.decode(elem, n, path)
		v.Set(elem.Addr())
	case reflect.Struct:
		d.structure(v, n, path)
	case reflect.Map:
		d.mapping(v, n, path)
	case reflect.Slice:
		d.list(v, n, path)
	default:
		panic("config: no rule for " + v.Type().String())
	}
}

func (d *decoder) structure(v reflect.Value, n *node, path string) {
	if short, ok := v.Interface().(shortener); ok && n.kind == kindString {
		field, _ := fieldOf(v, short.shortKey())
		d.decode(field, n, path)
		return
	}
	if n.kind != kindMapping {
		d.fail(n, path, "must be a mapping")
		return
	}
	for _, p := range n.pairs {
		keyPath := join(path, p.key)
		field, ok := fieldOf(v, p.key)
		if ok && p.value.kind == kindNull && isSection(field.Type()) {
			continue // as if it were not there
		}
		d.config.setOrigin(keyPath, origin{d.file, p.line})
		if !ok {
			d.fail(p.value, keyPath, "unknown key; known are "+strings.Join(keysOf(v), ", "))
			continue
		}
		d.decode(field, p.value, keyPath)
	}
}

func (d *decoder) mapping(v reflect.Value, n *node, path string) {
	if n.kind != kindMapping {
		d.fail(n, path, "must be a mapping")
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), len(n.pairs)))
	for _, p := range n.pairs {
		keyPath := join(path, p.key)
		d.config.setOrigin(keyPath, origin{d.file, p.line})
		elem := newElem(v.Type().Elem())
		d.decode(elem, p.value, keyPath)
		v.SetMapIndex(reflect.ValueOf(p.key), elem)
	}
}

func (d *decoder) list(v reflect.Value, n *node, path string) {
	if n.kind != kindSequence {
		d.fail(n, path, "must be a list")
		return
	}
	list := reflect.MakeSlice(v.Type(), 0, len(n.items))
	for i, item := range n.items {
		itemPath := index(path, i)
		d.config.setOrigin(itemPath, origin{d.file, item.line})
		elem := newElem(v.Type().Elem())
		d.decode(elem, item, itemPath)
		list = reflect.Append(list, elem)
	}
	v.Set(list)
}

func (d *decoder) scalar(v reflect.Value, n *node, path string) {
	text := n.text
	if n.kind == kindString {
		value, isReference, err := d.references.resolve(text)
		if err != nil {
			d.fail(n, path, err.Error())
			return
		}
		if isReference {
			if !setText(v, value) {
				d.fail(n, path, wanted(v.Type()))
			}
			return
		}
	}
	if !accepts(v.Type(), n.kind) || !setText(v, text) {
		d.fail(n, path, wanted(v.Type()))
	}
}

// isSection reports whether a key of the type has keys below it.
func isSection(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !isScalar(t) && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map)
}

// newElem returns a settable value with its defaults.
func newElem(t reflect.Type) reflect.Value {
	p := reflect.New(t)
	if d, ok := p.Interface().(defaulter); ok {
		d.setDefaults()
	}
	return p.Elem()
}

// fieldOf returns the field of a struct that has the key.
func fieldOf(v reflect.Value, key string) (reflect.Value, bool) {
	for field, value := range v.Fields() {
		if key != "" && keyOf(field) == key {
			return value, true
		}
	}
	return reflect.Value{}, false
}

// keysOf are the keys of a struct's fields, in their order.
func keysOf(v reflect.Value) (keys []string) {
	for field := range v.Fields() {
		if key := keyOf(field); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

// keyOf is a field's key; unexported fields have none, and no key is empty.
func keyOf(field reflect.StructField) string {
	key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return key
}
