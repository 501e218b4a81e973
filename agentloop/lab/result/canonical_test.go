package result

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCanonicalIsOneFormOfEqualValues(t *testing.T) {
	a := Canonical([]byte(`{ "b": [1, 2.50], "a": {"y": "<ü>", "x": null} }`))
	require.Equal(t, `{"a":{"x":null,"y":"<ü>"},"b":[1,2.50]}`, string(a))
	require.Equal(t, a, Canonical(a))
	require.Equal(t, `"no json"`, string(Canonical([]byte("no json"))))
	require.Equal(t, `"1 2"`, string(Canonical([]byte("1 2"))))
	require.Equal(t, `123456789012345678901`, string(Canonical([]byte("123456789012345678901"))))
}

func TestPrefixHoldsWhatMakesDecisionsTheSame(t *testing.T) {
	a := []Decision{NewDecision(ToolCall, "", "search", []byte(`{"q": 1, "n": 2}`)), NewDecision(Output, "", "", []byte(`"x"`))}
	b := []Decision{NewDecision(ToolCall, "", "search", []byte(`{"n":2,"q":1}`)), NewDecision(Output, "", "", []byte(`"y"`))}
	b[0].Sequence = 7
	require.Equal(t, 1, Common(a, b))
	require.Equal(t, Prefix(a, 1), Prefix(b, 1))
	require.NotEqual(t, Prefix(a, 2), Prefix(b, 2))
	b[0].Agent = "/child"
	require.Equal(t, 0, Common(a, b))
	require.NotEqual(t, Prefix(a, 1), Prefix(b, 1))
}
