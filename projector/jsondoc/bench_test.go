package jsondoc_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/projector/jsondoc"
)

func add(path, value string) eventlog.PatchOp {
	return eventlog.PatchOp{Op: "add", Path: path, Value: json.RawMessage(value)}
}

func manyElements(n int) string { return `{"a":[0` + strings.Repeat(",0", n-1) + `]}` }

func manyMembers(n int) string {
	var s strings.Builder
	s.WriteString(`{"a":{"k":0`)
	for i := range n - 1 {
		fmt.Fprintf(&s, `,"k%d":%d`, i, i)
	}
	return s.String() + "}}"
}

// BenchmarkPatch says what one operation takes, and how many bytes it counts.
func BenchmarkPatch(b *testing.B) {
	for _, c := range []struct {
		name, doc string
		op        eventlog.PatchOp
	}{
		{"insert into 10 elements", manyElements(10), add("/a/0", "1")},
		{"insert into 1.9M elements", manyElements(1_900_000), add("/a/0", "1")},
		{"insert into 8M elements", manyElements(8_000_000), add("/a/4000000", "1")},
		{"set one of 900k members", manyMembers(900_000), add("/a/k777777", "1")},
		{"set one of 5,000 nested", strings.Repeat(`{"a":`, 4990) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 4990), add(strings.Repeat("/a", 4980)+"/b", "1")},
		{"test of 900k members", manyMembers(900_000), eventlog.PatchOp{Op: "test", Path: "", Value: json.RawMessage(manyMembers(900_000))}},
	} {
		b.Run(c.name, func(b *testing.B) {
			doc, _, err := jsondoc.New([]byte(c.doc)).Patch([]eventlog.PatchOp{c.op}, plenty)
			require.NoError(b, err)
			var work int64
			for b.Loop() {
				doc, work, err = doc.Patch([]eventlog.PatchOp{c.op}, plenty)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(work), "work/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(work), "ns/work")
		})
	}
	b.Run("load 8M elements", func(b *testing.B) {
		text := []byte(manyElements(8_000_000))
		for b.Loop() {
			_, _, err := jsondoc.New(text).Patch([]eventlog.PatchOp{add("/b", "1")}, plenty)
			require.NoError(b, err)
		}
	})
	b.Run("load 900k members", func(b *testing.B) {
		text := []byte(manyMembers(900_000))
		for b.Loop() {
			_, _, err := jsondoc.New(text).Patch([]eventlog.PatchOp{add("/a/b", "1")}, plenty)
			require.NoError(b, err)
		}
	})
}

func TestALargePatchEndsAtItsWork(t *testing.T) {
	doc, work, err := jsondoc.New([]byte(`{}`)).Patch([]eventlog.PatchOp{add("/a", "[0"+strings.Repeat(",0", 499_999)+"]")}, 1<<30)
	require.NoError(t, err)
	require.Less(t, work, int64(8<<20))
	ops := slices.Repeat([]eventlog.PatchOp{add("/a/0", "1")}, 20_000)
	_, work, err = doc.Patch(ops, 64<<20)
	require.ErrorIs(t, err, jsondoc.ErrTooMuchWork)
	require.Equal(t, int64(64<<20), work)
	next, _, err := doc.Patch(ops[:500], 1<<30)
	require.NoError(t, err)
	require.Equal(t, doc.Len()+1000, next.Len())
}
