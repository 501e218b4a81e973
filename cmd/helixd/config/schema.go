package config

import _ "embed"

//go:embed helix.schema.json
var schema []byte

// Schema returns the JSON Schema of helix.yaml, for editors: its keys, their types
// and what they mean. [Load] checks more than it can say.
func Schema() []byte { return schema }
