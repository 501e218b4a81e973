package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/internal/plan"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// doubled is a schema of n levels, each of which has a value checked twice against the next one.
func doubled(n int) string {
	var defs []string
	for i := range n {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return fmt.Sprintf(`{"type":"object","$ref":"#/$defs/d0","$defs":{%s,"d%d":{}}}`, strings.Join(defs, ","), n)
}

// A client's tool whose arguments would be checked without an end is refused: the check would end the
// process.
func TestAClientsSchemaThatDoesNotEnd(t *testing.T) {
	for name, schema := range map[string]string{
		"itself":            `{"type":"object","$ref":"#"}`,
		"in a part":         `{"type":"object","allOf":[{"anyOf":[{"$ref":"#"}]}]}`,
		"each other":        `{"type":"object","$ref":"#/$defs/a~1","$defs":{"a/":{"not":{"$ref":"#/%24defs/b"}},"b":{"$ref":"#/$defs/a~1"}}}`,
		"of a member":       `{"type":"object","properties":{"q":{"$ref":"#/properties/q"}}}`,
		"an anchor":         `{"type":"object","$anchor":"x","if":{"$ref":"#x"}}`,
		"a dynamic anchor":  `{"type":"object","$dynamicAnchor":"x","else":{"$dynamicRef":"#x"}}`,
		"by its id":         `{"$id":"https://example.org/a","type":"object","then":{"$ref":"a"}}`,
		"an item of a list": `{"type":"object","oneOf":[{"$ref":"#/oneOf/0"}]}`,
		"a dependency":      `{"type":"object","dependentSchemas":{"q":{"$ref":"#"}}}`,
		"too often":         doubled(40),
	} {
		t.Run(name, func(t *testing.T) {
			err := plan.CheckClientTools(nil, []fact.ClientTool{{Name: "t", InputSchema: json.RawMessage(schema)}})
			var problem *eventlog.ValidationError
			require.ErrorAs(t, err, &problem)
			require.Contains(t, problem.Reason, "without an end")
		})
	}
	for name, schema := range map[string]string{
		"a tree":     `{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}},"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`,
		"shared":     `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"$ref":"#/$defs/x"}},"$defs":{"x":{"allOf":[{"$ref":"#/$defs/y"},{"$ref":"#/$defs/y"}]},"y":{}}}`,
		"two ids":    `{"$id":"https://example.org/a","type":"object","allOf":[{"$ref":"b"}],"$defs":{"b":{"$id":"b","type":"object"}}}`,
		"a few":      doubled(8),
		"words only": `{"type":"object","properties":{"$ref":{"type":"string"},"allOf":{"type":"array"},"not":{"type":"object"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, plan.CheckClientTools(nil, []fact.ClientTool{{Name: "t", InputSchema: json.RawMessage(schema)}}))
		})
	}
}
