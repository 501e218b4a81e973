package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/docs"
)

var updateSchema = flag.Bool("update-schema", false, "write helix.schema.json")

// words are what keys may be that have few values.
var words = map[string][]string{
	"agents.NAME.model.provider":           {"anthropic", "openai", "openai-responses", "scripted"},
	"agents.NAME.model.reasoning.summary":  {"auto", "concise", "detailed"},
	"agents.NAME.persistentAgents[].mode":  {ModeBlocking, ModeNonBlocking},
	"agents.NAME.workspace.provider":       {WorkspaceMemory, WorkspaceLocal, objects.ID},
	"agents.NAME.workspaces.NAME.provider": {WorkspaceMemory, WorkspaceLocal, objects.ID},
	"agents.NAME.memory.scope":             {"user", "agent", "session"},
	"memory.executor":                      {ExecutorInline, ExecutorBackground},
	"log.level":                            {"debug", "info", "warn", "error"},
	"log.format":                           {LogText, LogJSON},
	"chat.hideChunks[]":                    eventlog.ChunkTypes(),
}

type jsonSchema = map[string]any

// writer makes a schema of the configuration's types.
type writer struct {
	texts map[string]string // of keys, by their paths in the documentation
}

func (w writer) of(t reflect.Type, path string) jsonSchema {
	if t.Kind() == reflect.Pointer {
		return w.of(t.Elem(), path)
	}
	switch {
	case t == rawType:
		return jsonSchema{}
	case isScalar(t):
		return w.scalar(t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		properties := jsonSchema{}
		for field := range t.Fields() {
			if key := keyOf(field); key != "" {
				properties[key] = w.described(field.Type, join(path, key))
			}
		}
		section := jsonSchema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
		if short, ok := reflect.Zero(t).Interface().(shortener); ok {
			return jsonSchema{"anyOf": []jsonSchema{properties[short.shortKey()].(jsonSchema), section}}
		}
		return section
	case reflect.Map:
		return jsonSchema{"type": []string{"object", "null"}, "additionalProperties": w.of(t.Elem(), join(path, "NAME"))}
	default:
		return jsonSchema{"type": "array", "items": w.of(t.Elem(), path+"[]")}
	}
}

// described is of with what the documentation says of the key.
func (w writer) described(t reflect.Type, path string) jsonSchema {
	s := w.of(t, path)
	for _, as := range []string{path, path + "[]", path + ".NAME"} {
		if text := w.texts[as]; text != "" {
			s["description"] = text
		}
	}
	return s
}

// scalar is a value, or a reference to one.
func (w writer) scalar(t reflect.Type, path string) jsonSchema {
	reference := jsonSchema{"type": "string", "pattern": "^(env|file):"}
	either := func(s jsonSchema) jsonSchema { return jsonSchema{"anyOf": []jsonSchema{s, reference}} }
	switch {
	case words[path] != nil:
		return either(jsonSchema{"enum": words[path]})
	case t == durationType:
		return jsonSchema{"anyOf": []jsonSchema{
			{"type": "string", "pattern": `^(env|file):|^[-+]?([0-9.]+(ns|us|µs|ms|s|m|h))+$|^0$`}, {"const": 0},
		}}
	case t == bytesType:
		return jsonSchema{"type": []string{"string", "number"}}
	case t.Kind() == reflect.Bool:
		return either(jsonSchema{"type": "boolean"})
	case t.Kind() == reflect.Int:
		return either(jsonSchema{"type": "integer"})
	case t.Kind() == reflect.Float64:
		return either(jsonSchema{"type": "number"})
	}
	return jsonSchema{"type": "string"}
}

// TestSchema: the schema that editors get has each key of the types, and what the
// documentation says of it.
func TestSchema(t *testing.T) {
	keys, err := docs.Keys(".", "Config")
	require.NoError(t, err)
	w := writer{texts: map[string]string{}}
	for _, key := range keys {
		w.texts[key.Path] = key.Text
	}
	s := w.of(reflect.TypeFor[Config](), "")
	s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", "helix.yaml"
	want, err := json.MarshalIndent(s, "", " ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *updateSchema {
		require.NoError(t, os.WriteFile("helix.schema.json", want, 0o644))
		return
	}
	require.Equal(t, string(want), string(Schema()), "go test ./cmd/helixd/config -run TestSchema -args -update-schema")
}

// TestSchemaTakesFiles: the schema takes what Load takes, and refuses misspelt keys
// and wrong types.
func TestSchemaTakesFiles(t *testing.T) {
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(Schema(), &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	fits := func(text string) error {
		root, problems := parse("helix.yaml", []byte(text))
		require.Empty(t, problems)
		var v any
		require.NoError(t, json.Unmarshal(root.json(), &v))
		return resolved.Validate(v)
	}
	files, err := filepath.Glob("../examples/cluster/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range append(files, "testdata/example.yaml", "../packaging/helix.yaml") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.NoError(t, fits(string(text)), name)
	}
	shown := 0 // in the documentation, whole files and parts of one
	pages, err := filepath.Glob("../../../docs/*/*.md")
	require.NoError(t, err)
	for _, name := range append(pages, "../../../README.md") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		page, err := docs.Parse(name, string(text))
		require.NoError(t, err)
		for _, b := range page.Blocks {
			lab := slices.Contains([]string{"lab.yaml", "rules.yaml", "script.yaml"}, filepath.Base(b.File))
			if b.Language == "yaml" && !lab && !strings.Contains(b.Text, "scrape_configs:") { // those are Prometheus's
				assert.NoError(t, fits(b.Text), "%s:%d", name, b.Line)
				shown++
			}
		}
	}
	require.Greater(t, shown, 15)
	for _, text := range []string{
		agent("    subAgents: [a, {agent: b, timeout: 1m30s}, 'env:X']\n"), tool("        timeout: 0\n"), tool("        timeout: env:T\n"),
		model("provider: env:P, maxRetries: file:r, cache: 1h, topP: 0.5"), "nats:\nagents:\n", "disk: {minFree: 1GiB}\n",
		agent("    requireApproval: {'web_*': true, x: {when: {type: object}}}\n"),
	} {
		assert.NoError(t, fits(text), text)
	}
	for _, text := range []string{
		"listenn: x\n", agent("    subAgents: [{agnt: b}]\n"), agent("    maxSteps: many\n"), model("provider: acme"),
		tool("        timeout: soon\n"), tool("        timeout: 30\n"), "chat: {hideChunks: [nope]}\n", "listen: [x]\n", "auth: {tokens: {token: x}}\n",
	} {
		assert.Error(t, fits(text), text)
	}
}
