package jsondoc_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/jsondoc"
)

const plenty = int64(1) << 40

// plain applies a patch with a library that holds all values apart.
func plain(doc string, ops []eventlog.PatchOp) (next string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	raw, err := json.Marshal(ops)
	if err != nil {
		return "", err
	}
	p, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return "", err
	}
	o := jsonpatch.NewApplyOptions()
	o.SupportNegativeIndices, o.EscapeHTML, o.AccumulatedCopySizeLimit = false, false, jsondoc.MaxSize
	out, err := p.ApplyWithOptions([]byte(doc), o)
	if err == nil && (len(out) == 0 || out[0] != '{') {
		err = fmt.Errorf("no object")
	}
	return string(out), err
}

// maker makes documents and operations that often fit each other.
type maker struct{ *rand.Rand }

var keys = []string{"a", "b", "c", "list", "map", "é", "x/y", "m~n", "0", "1", "tab\t", "<&>", "\u2028", "\x01"}

func (m maker) key() string {
	if m.IntN(3) == 0 {
		return fmt.Sprint("k", m.IntN(400))
	}
	return keys[m.IntN(len(keys))]
}

func (m maker) spelled(key string) string {
	if m.IntN(4) == 0 { // every letter escaped
		var s strings.Builder
		for _, c := range key {
			fmt.Fprintf(&s, `\u%04x`, c)
		}
		return `"` + s.String() + `"`
	}
	raw, _ := json.Marshal(key)
	return string(raw)
}

func (m maker) value(depth int) string {
	n := m.IntN(10)
	if depth == 0 && n > 5 {
		n -= 5
	}
	switch n {
	case 0:
		return "null"
	case 1:
		return []string{"true", "1", "-0.50", "1e3", "12345678901234567890"}[m.IntN(5)]
	case 2:
		return m.spelled(m.key())
	case 3:
		return `"` + strings.Repeat("x", m.IntN(200)) + `"`
	case 4:
		if m.IntN(8) == 0 {
			return `"` + strings.Repeat("long \\\" ", m.IntN(2000)) + `"`
		}
		return `"\\"`
	case 5:
		return fmt.Sprint(m.IntN(1000))
	case 6, 7:
		return m.list(depth, m.IntN(4))
	default:
		return m.object(depth, m.IntN(6))
	}
}

func (m maker) list(depth, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = m.value(depth - 1)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (m maker) object(depth, n int) string {
	var all []string
	seen := map[string]bool{}
	for range n {
		if k := m.key(); !seen[k] {
			seen[k] = true
			all = append(all, m.spelled(k)+":"+m.value(depth-1))
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

// document is a state with some large arrays and objects.
func (m maker) document() string {
	large := func(n int) int {
		if m.IntN(2) == 0 {
			return m.IntN(4)
		}
		return m.IntN(n)
	}
	wide := ""
	if m.IntN(3) == 0 {
		wide = fmt.Sprintf(`,%s:%s`, m.spelled(strings.Repeat("é", 1000+m.IntN(4000))), m.value(2))
	}
	return fmt.Sprintf(`{"list":%s,"a":%s,"map":%s,"deep":{"list":[%s,%s]}%s}`,
		m.list(2, large(3000)), m.value(3), m.object(2, large(1000)), m.list(1, large(2000)), m.object(2, large(600)), wide)
}

// path leads to something in a document, or just past it.
func (m maker) path(v any) string {
	path := ""
	for {
		token := ""
		switch x := v.(type) {
		case map[string]any:
			all := make([]string, 0, len(x))
			for k := range x {
				all = append(all, k)
			}
			slices.Sort(all)
			if len(all) == 0 || m.IntN(8) == 0 {
				token, v = m.key(), nil
			} else {
				token = all[m.IntN(len(all))]
				v = x[token]
			}
		case []any:
			i := m.IntN(len(x) + 2)
			token = fmt.Sprint(i)
			if m.IntN(20) == 0 {
				token = []string{"-", "01", "+1", "-1", "-0", "x"}[m.IntN(6)]
			}
			if v = nil; i < len(x) {
				v = x[i]
			}
		default:
			return path
		}
		path += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(token)
		if m.IntN(4) == 0 {
			return path
		}
	}
}

func (m maker) op(doc any) eventlog.PatchOp {
	op := eventlog.PatchOp{Op: []string{"add", "add", "add", "remove", "remove", "replace", "replace", "move", "copy", "test"}[m.IntN(10)], Path: m.path(doc)}
	switch m.IntN(40) {
	case 0:
		op.Path = []string{"", "/", "//a", "/a/", "a", "a/b", "//list/0"}[m.IntN(7)]
	}
	switch op.Op {
	case "add", "replace", "test":
		op.Value = json.RawMessage(m.value(3))
		if m.IntN(30) == 0 {
			op.Value = json.RawMessage(m.document())
		}
	case "move", "copy":
		from := m.path(doc)
		if m.IntN(30) == 0 {
			from = []string{"", "/", "/a/"}[m.IntN(3)]
		}
		if op.Op == "copy" && strings.HasPrefix(op.Path, from) { // see TestACopyIntoItself
			op.Path = m.path(map[string]any{"a": 1.0})
		}
		op.From = &from
	}
	return op
}

func TestAPatchDoesWhatAPlainImplementationDoes(t *testing.T) {
	rounds := testkit.Times(20)
	applied := 0
	for round := range rounds {
		m := maker{rand.New(rand.NewPCG(uint64(round), 7))}
		text := m.document()
		doc := jsondoc.New([]byte(text))
		for range 40 {
			var parsed any
			require.NoError(t, json.Unmarshal([]byte(text), &parsed))
			ops := make([]eventlog.PatchOp, 1+m.IntN(3))
			for i := range ops {
				ops[i] = m.op(parsed)
			}
			want, wantErr := plain(text, ops)
			next, work, err := doc.Patch(ops, plenty)
			again, workAgain, errAgain := jsondoc.New([]byte(text)).Patch(ops, plenty)
			show, _ := json.Marshal(ops)
			require.Equal(t, workAgain, work, "round %d: work depends on how the document is held\n%.2000s", round, show)
			require.Equal(t, errAgain == nil, err == nil)
			if wantErr != nil {
				require.Error(t, err, "round %d: plain: %v\n%.2000s", round, wantErr, show)
				require.Equal(t, text, doc.String())
				continue
			}
			require.NoError(t, err, "round %d\n%.2000s\n%.3000s", round, show, text)
			applied++
			require.Equal(t, len(want), next.Len(), "round %d\n%.2000s\n%.3000s", round, show, text)
			if next.String() != want { // show little
				require.Failf(t, "another document", "round %d\n%.2000s\n%s", round, show, differ(want, next.String()))
			}
			require.Equal(t, want, again.String())
			text, doc = want, next
		}
	}
	require.Greater(t, applied, rounds*5)
}

// The keys of the copied value may be written in either way: the document that
// it comes from is on the operation's path.
func TestACopyIntoItself(t *testing.T) {
	from := "/a"
	next, _, err := jsondoc.New([]byte(`{"a":{"\u0062":{"\u0063":1}}}`)).Patch([]eventlog.PatchOp{{Op: "copy", From: &from, Path: "/a/b/d"}}, plenty)
	require.NoError(t, err)
	require.JSONEq(t, `{"a":{"b":{"c":1,"d":{"b":{"c":1}}}}}`, next.String())
}

func differ(want, got string) string {
	i := 0
	for i < len(want) && i < len(got) && want[i] == got[i] {
		i++
	}
	return fmt.Sprintf("at %d:\nwant %.100s\ngot  %.100s", i, want[max(0, i-30):], got[max(0, i-30):])
}

func TestOfMembersWithOneKeyTheLastValueStays(t *testing.T) {
	many := strings.Repeat(`"a":1,`, 2000)
	for _, c := range []struct{ doc, path, want string }{
		{`{"a":1,"b":2,"a":{"x":3}}`, "/a/x", `{"a":{"x":0},"b":2}`},
		{`{"a":1,"\u0061":2}`, "/c", `{"a":2,"c":0}`},
		{`{` + many + `"b":{` + many + `"a":2}}`, "/b/c", `{"a":1,"b":{"a":2,"c":0}}`},
		{`{"b":{` + many + `"a":2}}`, "/c", `{"b":{` + many + `"a":2},"c":0}`},
	} {
		next, _, err := jsondoc.New([]byte(c.doc)).Patch([]eventlog.PatchOp{{Op: "add", Path: c.path, Value: []byte("0")}}, plenty)
		require.NoError(t, err)
		require.Equal(t, c.want, next.String())
	}
}

func TestATestComparesValues(t *testing.T) {
	const doc = `{"o":{"a":1,"b":[1,{"c":"\u0041"}],"n":null},"l":[null],"s":"é"}`
	for value, same := range map[string]bool{
		`{"n":null,"b":[1,{"c":"A"}],"a":1}`:       true,
		`{"n":null,"b":[1,{"c":"A"}],"a":5,"a":1}`: true,
		`{"n":null,"b":[1,{"c":"A"}],"a":1.0}`:     false,
		`{"n":null,"b":[1,{"c":"A"},2],"a":1}`:     false,
		`{"n":null,"b":[1],"a":1}`:                 false,
		`{"n":null,"b":[1,{"c":"A"}],"a":1,"x":1}`: false,
		`{"x":null,"b":[1,{"c":"A"}],"a":1}`:       false,
		`[]`:                                       false, `null`: false, `1`: false, `"{\"a\":1}"`: false,
	} {
		_, _, err := jsondoc.New([]byte(doc)).Patch([]eventlog.PatchOp{{Op: "test", Path: "/o", Value: []byte(value)}}, plenty)
		require.Equal(t, same, err == nil, value)
	}
}

func TestADocumentIsNotNestedTooDeeply(t *testing.T) {
	doc := jsondoc.New([]byte(`{"a":{}}`))
	deep := strings.Repeat("[", 3000) + strings.Repeat("]", 3000)
	doc, _, err := doc.Patch([]eventlog.PatchOp{{Op: "add", Path: "/a/b", Value: []byte(deep)}}, plenty)
	require.NoError(t, err)
	from := "/a/b"
	_, _, err = doc.Patch([]eventlog.PatchOp{{Op: "copy", From: &from, Path: "/a/b" + strings.Repeat("/0", 2999) + "/-"}}, plenty)
	require.ErrorContains(t, err, "in each other")
}

// FuzzPatch has documents and operations of any kind.
func FuzzPatch(f *testing.F) {
	f.Add(`{"a":[1,2]}`, `[{"op":"add","path":"/a/0","value":{"b":1}}]`)
	f.Add(`{"a":{"b":"\u0041"}}`, `[{"op":"move","from":"/a/b","path":"/"},{"op":"copy","from":"","path":"/c"}]`)
	f.Fuzz(func(t *testing.T, text, patch string) {
		var ops []eventlog.PatchOp
		if !json.Valid([]byte(text)) || json.Unmarshal([]byte(patch), &ops) != nil {
			return
		}
		next, _, err := jsondoc.New([]byte(text)).Patch(ops, 1<<24)
		if err == nil && len(ops) > 0 {
			require.True(t, json.Valid(next.Bytes()), next.String())
			require.Len(t, next.Bytes(), next.Len())
		}
	})
}
