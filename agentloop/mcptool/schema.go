package mcptool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/helixd/helixd/agentloop/internal/plan"
)

// checkSchema returns why arguments can't be checked against a schema.
func checkSchema(raw json.RawMessage) error {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	if s.Type != "object" {
		return errors.New(`its type is not "object"`)
	}
	if err := plan.CheckEnds(raw); err != nil {
		return err
	}
	if _, err := s.Resolve(nil); err != nil {
		return err
	}
	// An unknown draft is not refused before the first validation.
	draft, err := (&jsonschema.Schema{Schema: s.Schema}).Resolve(nil)
	if err != nil {
		return err
	}
	return draft.Validate(map[string]any{})
}

// describe adds a schema that can't be used to a tool's description.
func describe(description string, schema json.RawMessage) string {
	return fmt.Sprintf("%s\n\nJSON Schema of the arguments: %s", description, cut(string(schema)))
}
