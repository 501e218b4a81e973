package web

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/integration/testkit"
)

func manyMembers(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, `,"%x":1`, i)
	}
	return "{" + s.String()[1:] + "}"
}

// A body does not make the server hold a multiple of it.
func TestMembersOfABody(t *testing.T) {
	testkit.OneGoroutine(t)
	_, err := ParseObject([]byte(manyMembers(api.MaxMembers)))
	require.NoError(t, err)
	_, err = ParseObject([]byte(manyMembers(api.MaxMembers + 1)))
	require.ErrorContains(t, err, "more than 1000 members")
	_, err = ParseObject([]byte(`{"a":1,"b":{"c":1,"c":2}}`))
	require.ErrorContains(t, err, "c is given twice")

	nested := []byte(`{"state":` + manyMembers(400_000) + `}`)
	require.Less(t, len(nested), api.MaxBody)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	o, err := ParseObject(nested)
	require.NoError(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2*len(nested)), "what is held")
	runtime.KeepAlive(o)
	runtime.KeepAlive(nested)
}
