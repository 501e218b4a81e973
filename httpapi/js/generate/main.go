// Command generate writes the TypeScript types of what httpapi takes and answers, from the schemas
// of its OpenAPI document.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

//go:generate go run . ../../openapi.yaml ../src/wire.ts

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: generate OPENAPI.YAML TYPES.TS")
	}
	source, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	types, err := generate(source)
	if err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
	if err := os.WriteFile(os.Args[2], types, 0o644); err != nil {
		log.Fatal(err)
	}
}

type schema = map[string]any

// generate returns a TypeScript module with a type for each schema of an OpenAPI document.
func generate(source []byte) ([]byte, error) {
	var document struct {
		Components struct {
			Schemas map[string]schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(source, &document); err != nil {
		return nil, err
	}
	g := generator{schemas: document.Components.Schemas}
	var b strings.Builder
	b.WriteString("// The types of requests and answers. Generated from httpapi/openapi.yaml by `go generate ./httpapi/js/generate`: do not edit.\n")
	for _, name := range slices.Sorted(maps.Keys(g.schemas)) {
		s := g.schemas[name]
		fmt.Fprintf(&b, "\n%sexport type %s = %s;\n", comment("", s), name, g.typeOf(s, ""))
	}
	return []byte(b.String()), g.err
}

type generator struct {
	schemas map[string]schema
	err     error // the first problem
}

// typeOf returns the type of a schema; its lines after the first are indented.
func (g *generator) typeOf(s schema, indent string) string {
	var all []string // whose intersection the type is
	if ref, ok := s["$ref"].(string); ok {
		all = append(all, name(ref))
	}
	all = append(all, g.own(s, indent)...)
	for _, t := range list(s["allOf"]) {
		all = append(all, g.typeOf(t, indent))
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		var union []string
		for _, t := range list(s[key]) {
			union = append(union, g.branch(s, t, indent))
		}
		if len(union) > 0 {
			all = append(all, "("+strings.Join(union, " | ")+")")
		}
	}
	if s["type"] == "string" && len(all) > 1 && all[0] == "string" { // the union names the strings
		all = all[1:]
	}
	if len(all) == 0 {
		return "unknown"
	}
	return strings.Join(all, " & ")
}

// branch returns the type of one alternative of a schema. Members that only one of the two
// requires, or describes, are required and have the type that the other gives them.
func (g *generator) branch(of, s schema, indent string) string {
	whole := maps.Clone(s)
	properties := maps.Clone(object(s["properties"]))
	for _, name := range names(s["required"]) {
		if properties[name] == nil && object(of["properties"])[name] != nil {
			properties[name] = object(of["properties"])[name]
		}
	}
	if len(properties) > 0 {
		whole["properties"] = properties
	}
	required, _ := s["required"].([]any)
	required = slices.Clone(required)
	for _, name := range names(of["required"]) {
		if properties[name] != nil {
			required = append(required, name)
		}
	}
	whole["required"] = required
	return g.typeOf(whole, indent)
}

// own returns the types of a schema's own words.
func (g *generator) own(s schema, indent string) []string {
	if c, ok := s["const"]; ok {
		return []string{literal(c)}
	}
	if values, ok := s["enum"].([]any); ok {
		var union []string
		for _, v := range values {
			union = append(union, literal(v))
		}
		return []string{"(" + strings.Join(union, " | ") + ")"}
	}
	switch t := s["type"].(type) {
	case []any:
		var union []string
		for _, one := range t {
			union = append(union, g.named(fmt.Sprint(one), s, indent)...)
		}
		return []string{"(" + strings.Join(union, " | ") + ")"}
	case string:
		return g.named(t, s, indent)
	}
	return g.members(s, indent)
}

func (g *generator) named(t string, s schema, indent string) []string {
	switch t {
	case "string", "boolean", "null":
		return []string{t}
	case "integer", "number":
		return []string{"number"}
	case "array":
		return []string{"Array<" + g.typeOf(object(s["items"]), indent) + ">"}
	case "object":
		if all := g.members(s, indent); len(all) > 0 {
			return all
		}
		if s["oneOf"] != nil || s["anyOf"] != nil {
			return nil
		}
		return []string{"{ [member: string]: unknown }"}
	}
	g.fail("type %s is not known", t)
	return nil
}

// members returns the type of an object's members, and of those that have no name.
func (g *generator) members(s schema, indent string) (all []string) {
	properties, required := object(s["properties"]), names(s["required"])
	known := slices.Sorted(maps.Keys(properties))
	var b strings.Builder
	for _, name := range known {
		p := object(properties[name])
		optional := "?"
		if slices.Contains(required, name) {
			optional = ""
		}
		fmt.Fprintf(&b, "%s%s  %s%s: %s;\n", comment(indent+"  ", p), indent, name, optional, g.typeOf(p, indent+"  "))
	}
	for _, name := range required {
		if properties[name] != nil {
			continue
		}
		t := "unknown"
		if p := g.inherited(s, name); p != nil {
			t = g.typeOf(p, indent+"  ")
		}
		fmt.Fprintf(&b, "%s  %s: %s;\n", indent, name, t)
	}
	if b.Len() > 0 {
		all = append(all, "{\n"+b.String()+indent+"}")
	}
	switch more := s["additionalProperties"].(type) {
	case bool:
		if more {
			all = append(all, "{ [member: string]: unknown }")
		}
	case map[string]any:
		all = append(all, "{ [member: string]: "+g.typeOf(more, indent)+" }")
	}
	return all
}

// inherited returns the schema that a $ref's schema gives a member, or nil.
func (g *generator) inherited(s schema, member string) schema {
	ref, ok := s["$ref"].(string)
	if !ok {
		return nil
	}
	base := g.schemas[name(ref)]
	if p, ok := object(base["properties"])[member]; ok {
		return object(p)
	}
	return g.inherited(base, member)
}

func (g *generator) fail(format string, a ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, a...)
	}
}

// comment returns a schema's description as a docstring.
func comment(indent string, s schema) string {
	text, _ := s["description"].(string)
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return ""
	case !strings.Contains(text, "\n"):
		return indent + "/** " + text + " */\n"
	}
	return indent + "/**\n" + regexp.MustCompile(`(?m)^`).ReplaceAllString(text, indent+" * ") + "\n" + indent + " */\n"
}

func literal(v any) string {
	raw, _ := json.Marshal(v)
	return string(raw)
}

func name(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

func object(v any) schema {
	m, _ := v.(map[string]any)
	if m == nil {
		return schema{}
	}
	return m
}

func list(v any) (all []schema) {
	values, _ := v.([]any)
	for _, one := range values {
		all = append(all, object(one))
	}
	return all
}

func names(v any) (all []string) {
	values, _ := v.([]any)
	for _, one := range values {
		all = append(all, fmt.Sprint(one))
	}
	return all
}
