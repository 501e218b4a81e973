package client_test

import (
	"bytes"
	"context"
	"io"
	"iter"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/testkit"
)

// all returns what an iteration yields.
func all[T any](t *testing.T, items iter.Seq2[T, error]) (got []T) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		got = append(got, item)
	}
	return got
}

// exported returns a session's records, one a line.
func exported(t *testing.T, c *client.Client, session string) []byte {
	t.Helper()
	var lines bytes.Buffer
	for _, r := range all(t, c.Records(ctxOf(t), session, client.RecordRange{Dead: true})) {
		line, err := r.MarshalJSON()
		require.NoError(t, err)
		lines.Write(append(line, '\n'))
	}
	return lines.Bytes()
}

func opens(body []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
}

// use uses a route.
type use func(*testing.T, context.Context, *server, *client.Client)

// aliases are second names of routes, which the client has no use for; nor has
// it for the description of the routes, and for the page in which people use
// them.
var aliases = map[string]string{
	"GET /workspaces": "GET /workspace", "GET /openapi.json": "this package", "GET /": "a browser", "GET /debugger/{file}": "a browser",
}

// Every route has a method that reaches it.
func TestRoutes(t *testing.T) {
	testkit.Long(t)
	uses := map[string]use{}
	for _, some := range []map[string]use{usesRuns, usesSessions, usesListings, usesMemories, usesChat, usesAppend} {
		maps.Copy(uses, some)
	}
	known := map[string]bool{}
	for _, rt := range httpapi.Routes() {
		name := rt.Method + " " + rt.Pattern
		known[name] = true
		if aliases[name] != "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			require.NotNil(t, uses[name], "the client has no method for it that is used here")
			s := newServer(t)
			uses[name](t, ctxOf(t), s, s.client())
			s.mu.Lock()
			defer s.mu.Unlock()
			require.True(t, slices.ContainsFunc(s.hits, func(h hit) bool { return h.method+" "+h.pattern == name }))
			require.False(t, slices.ContainsFunc(s.hits, func(h hit) bool { return h.pattern == "" }), "no request went astray")
		})
	}
	for name := range uses {
		require.True(t, known[name], "%s is no route", name)
	}
}
