package jsondoc_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/jsondoc"
)

// allocated returns how many bytes f allocates.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A patch that copies a large part of a document counts it.
func TestWorkCoversWhatAPatchCopies(t *testing.T) {
	testkit.Long(t)
	testkit.Sequential(t)
	huge := strings.Repeat("k", 4<<20)
	large := strings.Repeat("v", 1<<20)
	for name, doc := range map[string]string{
		"a huge key":                       `{"a":1,"` + huge + `":1,"z":1}`,
		"a huge key with a large value":    `{"a":1,"` + huge + `":"` + large + `","z":1}`,
		"two huge keys":                    `{"a":1,"` + huge + `1":1,"` + huge + `22":1,"z":1}`,
		"a huge key further up":            `{"` + huge + `":1,"b":{"a":1,"z":1},"c":2}`,
		"a large value":                    `{"a":1,"b":"` + large + `","z":1}`,
		"many members":                     manyMembers(100_000),
		"keys of a little more than a run": `{"a":1` + members(300, strings.Repeat("k", 5000)) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			path := ""
			if strings.Contains(doc, `"b":{`) {
				path = "/b"
			}
			loaded, _, err := jsondoc.New([]byte(doc)).Patch([]eventlog.PatchOp{add(path+"/a", "2")}, plenty)
			require.NoError(t, err)
			for _, op := range []eventlog.PatchOp{add(path+"/a", "3"), add(path+"/z", "3"), add(path+"/new", "3"), {Op: "remove", Path: path + "/a"}} {
				var work int64
				bytes := allocated(func() { loaded, work, err = loaded.Patch([]eventlog.PatchOp{op}, plenty) })
				require.NoError(t, err)
				require.Less(t, bytes, 6*work, "%s %s", op.Op, op.Path)
				_, again, err := jsondoc.New(loaded.Bytes()).Patch([]eventlog.PatchOp{add(path+"/new", "3")}, plenty)
				require.NoError(t, err)
				_, held, err := loaded.Patch([]eventlog.PatchOp{add(path+"/new", "3")}, plenty)
				require.NoError(t, err)
				require.Equal(t, again, held, "work depends on how the document is held")
			}
		})
	}
}

func members(n int, key string) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, `,"%s%d":%d`, key, i, i)
	}
	return s.String()
}
