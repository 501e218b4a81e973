package httpapi_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// described returns what must be seen of the document: each answer with its
// status, and with each of its codes; each parameter and header; each member of
// what is sent and answered; each type of a stream's events.
func (d *apiDocument) described() []string {
	all := map[string]bool{}
	add := func(what ...string) { all[strings.Join(what, " ")] = true }
	for op := range d.operations() {
		for _, p := range op.Parameters {
			if p.In != "path" {
				add(op.ID, "parameter", p.Name)
			}
		}
		if op.Body != nil {
			for contentType, media := range op.Body.Content {
				add(op.ID, "body", contentType)
				for _, s := range []apiSchema{media.Schema, media.Items} {
					d.eachMember(op.ID+" body", s, anyValue, func(name string) { add("member", name) })
				}
			}
		}
		for status, r := range op.Responses {
			if status == "default" {
				for _, status := range []string{"401", "403", "429", "500", "503"} {
					add(op.ID, status)
				}
				continue
			}
			add(op.ID, status)
			for name := range r.Headers {
				add(op.ID, status, name)
			}
			for _, media := range r.Content {
				for _, code := range d.codes(media.Schema) {
					add(op.ID, status, code)
				}
				for _, s := range []apiSchema{media.Schema, media.Items} {
					d.eachMember(op.ID+" "+status, s, anyValue, func(name string) { add("member", name) })
				}
				for _, typ := range d.types(media.Items) {
					add("item", keyOf(media.Items), typ)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// codes returns those of an answer that is an error.
func (d *apiDocument) codes(s apiSchema) []string {
	properties, _ := s["properties"].(apiSchema)
	code, _ := properties["code"].(apiSchema)
	return schemaConstants(code)
}

// schemaConstants returns the strings that a schema takes.
func schemaConstants(s apiSchema) []string {
	if c, ok := s["const"].(string); ok {
		return []string{c}
	}
	return schemaWords(s["enum"])
}

// types returns the types of objects that a schema describes.
func (d *apiDocument) types(s apiSchema) (all []string) {
	if properties, ok := s["properties"].(apiSchema); ok && properties["type"] != nil {
		typ := properties["type"].(apiSchema)
		all = append(all, schemaConstants(typ)...)
		if typ["pattern"] == "^"+dataPart {
			all = append(all, dataPart)
		}
	}
	if target := d.target(s); target != nil {
		all = append(all, d.types(target)...)
	}
	for _, name := range combiners {
		of, _ := s[name].([]any)
		for _, inner := range of {
			all = append(all, d.types(inner.(apiSchema))...)
		}
	}
	return all
}

// anyValue, as a value, has all the members that a schema describes.
var anyValue any = struct{}{}

// eachMember calls visit with the members that a value has of those that a
// schema describes, at any depth. They are named by where they are described.
func (d *apiDocument) eachMember(where string, s apiSchema, value any, visit func(name string)) {
	if target := d.target(s); target != nil {
		d.eachMember(strings.TrimPrefix(s["$ref"].(string), schemaRef), target, value, visit)
	}
	members, isObject := value.(apiSchema)
	properties, _ := s["properties"].(apiSchema)
	for name, inner := range properties {
		member, has := members[name]
		if value == anyValue {
			member, has = anyValue, true
		}
		if has {
			visit(where + "." + name)
			d.eachMember(where+"."+name, inner.(apiSchema), member, visit)
		}
	}
	if others, ok := s["additionalProperties"].(apiSchema); ok {
		if value == anyValue {
			d.eachMember(where+".*", others, anyValue, visit)
		}
		for name, member := range members {
			if properties[name] == nil {
				d.eachMember(where+".*", others, member, visit)
			}
		}
	}
	if items, ok := s["items"].(apiSchema); ok {
		list, isList := value.([]any)
		if !isList {
			list = []any{value}
		}
		for _, item := range list {
			d.eachMember(where+"[]", items, item, visit)
		}
	}
	for _, name := range combiners {
		of, _ := s[name].([]any)
		for i, inner := range of {
			if inner := inner.(apiSchema); !isObject || d.fits(inner, members) {
				d.eachMember(fmt.Sprintf("%s/%d", where, i), inner, value, visit)
			}
		}
	}
}

// fits reports whether a schema, one of several, is the one for an object: it
// has what is required, and its words are the schema's.
func (d *apiDocument) fits(s apiSchema, object apiSchema) bool {
	if target := d.target(s); target != nil && !d.fits(target, object) {
		return false
	}
	for _, name := range schemaWords(s["required"]) {
		if _, ok := object[name]; !ok {
			return false
		}
	}
	properties, _ := s["properties"].(apiSchema)
	for name, inner := range properties {
		word, ok := object[name].(string)
		allowed := schemaConstants(inner.(apiSchema))
		pattern, _ := inner.(apiSchema)["pattern"].(string)
		if ok && (len(allowed) > 0 && !slices.Contains(allowed, word) || !strings.HasPrefix(word, strings.TrimPrefix(pattern, "^"))) {
			return false
		}
	}
	return true
}
