package eventlog

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// The rules of deltas that validateChunk checks by hand are all that their tags have.
func TestRulesOfDeltas(t *testing.T) {
	for c, want := range map[Chunk]map[string]string{
		new(TextDelta):          {},
		new(Thinking):           {},
		new(ToolArgStreamDelta): {"toolCallId": "id"},
	} {
		require.NotNil(t, deltaText(c), c.Type())
		rules := map[string]string{}
		for _, f := range schemaOf(reflect.TypeOf(c).Elem()).ruled {
			rules[f.name] = f.rule
		}
		require.Equal(t, want, rules, c.Type())
	}
}
