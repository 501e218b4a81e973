package projector_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// TestAnyTreeCanBeFoldedOn: a saved fold may be damaged or malicious. Whatever JSON a
// tree comes from, the fold continues.
func TestAnyTreeCanBeFoldedOn(t *testing.T) {
	records := conversation()
	cuts := len(records) / 4
	for _, i := range testkit.Random(t).Perm(cuts)[:testkit.Times(cuts)] {
		cut := 1 + 4*i
		raw := []byte(encoded(t, projector.Fold(records[:cut]...)))
		var root any
		require.NoError(t, json.Unmarshal(raw, &root))
		try := func(path, with string) {
			tree := new(projector.Tree)
			if json.Unmarshal([]byte(encoded(t, root)), tree) != nil {
				return
			}
			require.NotPanics(t, func() {
				for _, r := range records[cut:] {
					projector.Apply(tree, r)
				}
				_, err := projector.RestoreAt(tree)
				_ = err // an error is allowed, a panic is not
				tree.Orphans()
			}, "%d: %s is %s", cut, path, with)
		}
		for _, with := range []string{`null`, `{}`, `[]`, `[null]`, `{"x":null}`, `-1`, `9223372036854775807`} {
			damage(root, func(v any) { root = v }, "", func() any { return json.RawMessage(with) }, func(path string) { try(path, with) })
		}
	}
}

// damage replaces each value in v and calls try.
func damage(v any, set func(any), path string, with func() any, try func(string)) {
	set(with())
	try(path)
	set(v)
	switch v := v.(type) {
	case map[string]any:
		for name := range v {
			damage(v[name], func(x any) { v[name] = x }, path+"."+name, with, try)
		}
	case []any:
		for i := range v {
			damage(v[i], func(x any) { v[i] = x }, path+"[]", with, try)
		}
	}
}

func TestAToolResultWithoutItsAnswerIsParked(t *testing.T) {
	records := conversation()
	for cut, r := range records {
		if r.Type != "tool_result" || r.Agent != "s" {
			continue
		}
		tree := projector.Fold(records[:cut]...)
		parked := len(tree.Parked)
		tree.Messages = nil
		projector.Apply(tree, r)
		require.Len(t, tree.Parked, parked+1)
		require.Equal(t, "the answer that it belongs to is not there", tree.Parked[parked].Reason)
		require.Empty(t, tree.Messages)
		return
	}
	require.Fail(t, "there is no tool result")
}
