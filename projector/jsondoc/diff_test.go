package jsondoc_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/wI2L/jsondiff"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/jsondoc"
)

func TestADiffIsThatOfAPlainImplementation(t *testing.T) {
	for round := range 60 {
		m := maker{rand.New(rand.NewPCG(uint64(round), 11))}
		before := m.object(3, 6)
		after := m.object(3, 6)
		if round%2 == 0 { // they have much in common
			next, _, err := jsondoc.New([]byte(before)).Patch([]eventlog.PatchOp{{Op: "add", Path: "/a", Value: json.RawMessage(m.value(2))}}, plenty)
			require.NoError(t, err)
			after = next.String()
		}
		got, err := jsondoc.Diff(t.Context(), []byte(before), []byte(after))
		require.NoError(t, err)
		want, err := jsondiff.CompareJSON([]byte(before), []byte(after), jsondiff.UnmarshalFunc(func(raw []byte, v any) error {
			d := json.NewDecoder(strings.NewReader(string(raw)))
			d.UseNumber()
			return d.Decode(v)
		}))
		require.NoError(t, err)
		wantJSON, err := json.Marshal(append(jsondiff.Patch{}, want...))
		require.NoError(t, err)
		gotJSON, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, string(wantJSON), string(gotJSON), "round %d\n%s\n%s", round, before, after)
	}
}

func TestALargeDiffReplaces(t *testing.T) {
	before, after := manyMembers(20_000), strings.ReplaceAll(manyMembers(20_000), ":", ":1")
	after = strings.Replace(after, `"a":1{`, `"a":{`, 1)
	ops, err := jsondoc.Diff(t.Context(), []byte(before), []byte(after))
	require.NoError(t, err)
	require.Len(t, ops, 1)
	require.Equal(t, []string{"replace", "/a"}, []string{ops[0].Op, ops[0].Path})
	next, _, err := jsondoc.New([]byte(before)).Patch(ops, plenty)
	require.NoError(t, err)
	require.Equal(t, after, next.String())
}

// Arrays that differ in millions of elements make no operation for each.
func TestALargeDiffTakesLittleMemory(t *testing.T) {
	testkit.Sequential(t)
	const elements = 1_000_000
	array := func(digit string, n int) []byte {
		return []byte(`{"a":[` + strings.Repeat(digit+",", n) + digit + `]}`)
	}
	for name, arrays := range map[string][2][]byte{
		"other elements": {array("1", elements), array("2", elements)},
		"longer":         {array("1", 1), array("1", elements)},
		"shorter":        {array("1", elements), array("1", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			var ops []eventlog.PatchOp
			bytes := allocated(func() {
				var err error
				ops, err = jsondoc.Diff(t.Context(), arrays[0], arrays[1])
				require.NoError(t, err)
			})
			require.Len(t, ops, 1)
			require.Equal(t, []string{"replace", "/a"}, []string{ops[0].Op, ops[0].Path})
			require.Less(t, bytes, int64(5*(len(arrays[0])+len(arrays[1]))))
		})
	}
}

func TestADiffEnds(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := jsondoc.Diff(ended, []byte(`{"a":1}`), []byte(`{"a":2}`))
	require.ErrorIs(t, err, context.Canceled)

	const levels = 490 // each of them is looked at with all that is in it
	deep := func(s string) []byte {
		return []byte(strings.Repeat(`{"a":`, levels) + `"` + strings.Repeat("x", 2<<20) + s + `"` + strings.Repeat("}", levels))
	}
	ops, err := jsondoc.Diff(t.Context(), deep("a"), deep("b"))
	require.NoError(t, err)
	require.Len(t, ops, 1)
	require.Less(t, strings.Count(ops[0].Path, "/"), levels, "it is replaced with what is around it")
	next, _, err := jsondoc.New(deep("a")).Patch(ops, plenty)
	require.NoError(t, err)
	require.Equal(t, string(deep("b")), next.String())
}
