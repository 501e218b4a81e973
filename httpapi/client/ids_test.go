package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/client"
)

// Every id reaches its own session by every kind of route.
func TestOddIDs(t *testing.T) {
	s := newServer(t)
	c, ctx := s.client(), ctxOf(t)
	ids := []string{
		"*", ">", "a.b", "a/b", "a", "a b", "a+b", "é", "..", ".", "...", "%", "%2F", "a%2Fb", "/", "//", "a/../b", "a/", "/a",
		"?x=1", "#", "a;b", "a&b=c", "\\", `"`, "<script>", "state", "records", "日本語", strings.Repeat("é", 128),
	}
	for _, id := range ids {
		_, err := c.Session(ctx, id)
		refused(t, err, 404, "NOT_FOUND")
		s.written(id, 1)
	}
	for _, id := range ids {
		summary, err := c.Session(ctx, id)
		require.NoError(t, err, id)
		require.Equal(t, id, summary.SessionID)
		state, err := c.State(ctx, id)
		require.NoError(t, err, id)
		require.Equal(t, id, state.State.SessionID)
		status, err := c.Status(ctx, id)
		require.NoError(t, err, id)
		require.Equal(t, id, status.SessionID)
		_, err = c.Snapshot(ctx, id, client.SnapshotOptions{})
		require.NoError(t, err, id)
		require.Len(t, all(t, c.Records(ctx, id, client.RecordRange{})), 1, "of nobody else")
		_, err = c.End(ctx, id, nil, client.AppendOptions{})
		require.NoError(t, err, id)
		texts, _ := s.stream(c, id, 0)
		require.Equal(t, []string{"text 0 of 1"}, texts, id)
	}
	require.Len(t, all(t, c.AllSessions(ctx, client.SessionFilter{})), len(ids))
	for _, id := range ids {
		erased, err := c.Erase(ctx, id)
		require.NoError(t, err, id)
		require.Equal(t, id, erased.SessionID)
	}
	require.Empty(t, all(t, c.AllSessions(ctx, client.SessionFilter{})))
}

// The routes may be below a path.
func TestAServerBelowAPath(t *testing.T) {
	s := newServer(t)
	s.written("a/../b", 1)
	c := quick(s.prefixed("/agents/v1") + "/agents/v1/")
	summary, err := c.Session(ctxOf(t), "a/../b")
	require.NoError(t, err)
	require.Equal(t, "a/../b", summary.SessionID)
}
