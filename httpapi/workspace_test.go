package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
)

// TestWorkspace: there is none, of sessions that there are.
func TestWorkspace(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	a.append("a/b", created("a/b"))
	for _, target := range []string{"/workspace", "/workspaces"} {
		got := a.get(target + "?sessionId=a%2Fb")
		require.Equal(t, 200, got.status)
		require.Equal(t, `{"workspace":null}`, got.body)
		a.get(target+"?sessionId=nobody").failed(t, 404, httpapi.CodeNotFound)
		a.get(target).failed(t, 400, httpapi.CodeInvalidRequest)
		require.Equal(t, "GET, HEAD", a.post(target, "{}").header.Get("Allow"))
	}
}
