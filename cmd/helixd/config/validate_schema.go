package config

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// checkSchema refuses what is no JSON Schema.
func (k *checker) checkSchema(raw json.RawMessage, path string) {
	if raw == nil {
		return
	}
	k.resolve(raw, path)
}

// checkObjectSchema also refuses a schema of anything but objects: models and
// agents are called with objects, and end with one.
func (k *checker) checkObjectSchema(raw json.RawMessage, path string) {
	if raw == nil {
		return
	}
	if schema := k.resolve(raw, path); schema != nil {
		k.require(schema.Type == "object", path, "must have type: object")
	}
}

// resolve returns the schema, or nil if it is none.
func (k *checker) resolve(raw json.RawMessage, path string) *jsonschema.Schema {
	if !isObject(raw) {
		k.require(false, path, "must be a JSON Schema, a mapping")
		return nil
	}
	var schema jsonschema.Schema
	err := json.Unmarshal(raw, &schema)
	if err == nil {
		_, err = schema.Resolve(nil)
	}
	if err != nil {
		k.require(false, path, "must be a JSON Schema: "+err.Error())
		return nil
	}
	return &schema
}
