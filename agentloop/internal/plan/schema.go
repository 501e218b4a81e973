package plan

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"reflect"
	"strconv"
	"strings"
)

// maxChecks is how many schemas one value may be checked against, its members apart.
const maxChecks = 10_000

// CheckEnds returns an error if a JSON Schema has a value checked against schemas without an end,
// as {"$ref":"#"} has, or against too many. Such a check ends the process: no stack is large enough
// for it. Schemas come from clients and MCP servers, too.
func CheckEnds(schema json.RawMessage) error {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return nil // no check begins
	}
	c := &counter{counts: map[uintptr]int{}, named: map[string][]object{}}
	if root, ok := doc.(object); ok {
		c.bases = []object{root}
	}
	c.collect(doc)
	for _, o := range c.all {
		if c.count(o) > maxChecks {
			return fmt.Errorf("refers to itself without an end, or has a value checked against more than %d schemas", maxChecks)
		}
	}
	return nil
}

type object = map[string]any

// counter counts what a value is checked against.
type counter struct {
	all    []object
	bases  []object            // what a reference may begin with: the whole, and schemas with an id
	named  map[string][]object // by their anchors
	counts map[uintptr]int     // by the schema; 0: it is being counted
	depth  int
}

func (c *counter) collect(value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			c.collect(v)
		}
	case object:
		c.all = append(c.all, value)
		if id, ok := value["$id"].(string); ok {
			if name, anchor := strings.CutPrefix(id, "#"); anchor { // draft 7
				c.named[name] = append(c.named[name], value)
			} else {
				c.bases = append(c.bases, value)
			}
		}
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := value[key].(string); ok {
				c.named[name] = append(c.named[name], value)
			}
		}
		for _, v := range value {
			c.collect(v)
		}
	}
}

// count returns how many schemas a value that is checked against one is checked against, at most
// maxChecks+1.
func (c *counter) count(o object) int {
	id := reflect.ValueOf(o).Pointer()
	n, known := c.counts[id]
	switch {
	case known && n == 0, c.depth > maxChecks:
		return maxChecks + 1
	case known:
		return n
	}
	c.counts[id], n = 0, 1
	c.depth++
	for _, next := range c.sameValue(o) {
		if n = min(n+c.count(next), maxChecks+1); n > maxChecks {
			break
		}
	}
	c.depth--
	c.counts[id] = n
	return n
}

// sameValue returns the schemas that the value of a schema is checked against as well.
func (c *counter) sameValue(o object) (all []object) {
	add := func(v any) {
		if next, ok := v.(object); ok {
			all = append(all, next)
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[key].([]any)
		for _, v := range list {
			add(v)
		}
	}
	for _, key := range []string{"not", "if", "then", "else"} {
		add(o[key])
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		members, _ := o[key].(object)
		for _, v := range members {
			add(v)
		}
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := o[key].(string); ok {
			all = append(all, c.targets(ref)...)
		}
	}
	return all
}

// targets returns what a reference may refer to.
func (c *counter) targets(ref string) (all []object) {
	document, fragment, _ := strings.Cut(ref, "#")
	if text, err := url.PathUnescape(fragment); err == nil {
		fragment = text
	}
	if fragment != "" && fragment[0] != '/' {
		return c.named[fragment]
	}
	for _, base := range c.bases {
		id, _ := base["$id"].(string)
		if document != "" && path.Base(document) != path.Base(strings.TrimSuffix(id, "#")) {
			continue
		}
		if o, ok := at(base, fragment).(object); ok {
			all = append(all, o)
		}
	}
	return all
}

// at returns what a JSON pointer points to, or nil.
func at(value any, pointer string) any {
	if pointer == "" {
		return value
	}
	for name := range strings.SplitSeq(pointer[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch in := value.(type) {
		case object:
			value = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(in) {
				return nil
			}
			value = in[i]
		default:
			return nil
		}
	}
	return value
}
