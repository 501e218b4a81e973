package config

import (
	"errors"
	"reflect"
	"strings"
	"unicode"
)

// envName is the environment variable of a dotted key: HELIX_ and the key in
// capitals, with _ for dots and humps. nats.url is HELIX_NATS_URL.
func envName(key string) string {
	var b strings.Builder
	b.WriteString("HELIX_")
	var last rune
	for _, r := range key {
		switch {
		case r == '.':
			b.WriteByte('_')
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte('_')
			b.WriteRune(r)
		default:
			b.WriteRune(unicode.ToUpper(r))
		}
		last = r
	}
	return b.String()
}

// eachLeaf visits the keys that the environment and [Config.SetFrom] can set, in
// the schema's order: every scalar outside of lists and maps, and lists of strings,
// which are comma-separated there.
func eachLeaf(v reflect.Value, path string, visit func(path string, v reflect.Value)) {
	for field, value := range v.Fields() {
		key := keyOf(field)
		if key == "" {
			continue
		}
		switch {
		case isScalar(value.Type()), value.Type() == stringsType:
			visit(join(path, key), value)
		case value.Kind() == reflect.Struct:
			eachLeaf(value, join(path, key), visit)
		}
	}
}

// SetFrom sets a scalar, or a list of strings, from text. An unknown key or a bad
// value is an error that names the source ("--listen") and the key, and changes
// nothing. Problems that depend on several keys are only reported by
// [Config.Validate].
func (c *Config) SetFrom(source, key, value string) error {
	at := origin{name: source}
	var leaf reflect.Value
	eachLeaf(reflect.ValueOf(c).Elem(), "", func(path string, v reflect.Value) {
		if path == key {
			leaf = v
		}
	})
	if !leaf.IsValid() {
		return problem{at: at, path: key, text: "unknown key"}
	}
	before := reflect.New(leaf.Type()).Elem()
	before.Set(leaf)
	err := error(problem{at: at, path: key, text: wanted(leaf.Type())})
	if setText(leaf, value) {
		err = c.checkLeaf(key, at)
	}
	if err != nil {
		leaf.Set(before)
		return err
	}
	c.setOrigin(key, at)
	return nil
}

// checkLeaf returns what is wrong with one key, regardless of the others.
func (c *Config) checkLeaf(key string, at origin) error {
	var errs []error
	for _, p := range c.check() {
		if within(key, p.path) && !p.missing {
			p.at = at
			errs = append(errs, p)
		}
	}
	return errors.Join(errs...)
}

// setEnv sets the keys that have a variable in the environment.
func (c *Config) setEnv(getenv func(string) (string, bool)) []problem {
	var problems []problem
	eachLeaf(reflect.ValueOf(c).Elem(), "", func(path string, v reflect.Value) {
		name := envName(path)
		text, ok := getenv(name)
		if !ok {
			return
		}
		at := origin{name: name}
		c.setOrigin(path, at)
		if !setText(v, text) {
			problems = append(problems, problem{at: at, path: path, text: wanted(v.Type())})
		}
	})
	return problems
}
