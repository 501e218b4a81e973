package eventlog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestThePathOfADuplicateIsBounded: deep nesting does not make it grow with each level.
func TestThePathOfADuplicateIsBounded(t *testing.T) {
	_, path := membersOf([]byte(`{"a":[{"b":1},{"c":{"d":1,"d":2}}]}`))
	require.Equal(t, "a[1].c.d", path)
	const levels = 2000
	name := `{"` + strings.Repeat("n", 500) + `":`
	_, path = membersOf([]byte(strings.Repeat(name, levels) + `{"d":1,"d":2}` + strings.Repeat("}", levels)))
	require.True(t, strings.HasSuffix(path, "n.d"))
	require.Less(t, len(path), 2*maxPath)
}
