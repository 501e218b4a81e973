package httpapi_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth/authtest"
)

// erasedLog is a log whose session is erased, and created again, before an erasure reaches it.
type erasedLog struct {
	eventlog.Log
	meanwhile func()
}

func (l *erasedLog) Erase(ctx context.Context, session string) (eventlog.Erasure, error) {
	if session == "s" {
		l.meanwhile()
	}
	return l.Log.Erase(ctx, session)
}

// A deletion erases the session that its caller may erase, not the next one of the id, which is another user's.
func TestADeletionLeavesAnotherUsersNextSession(t *testing.T) {
	t.Parallel()
	var who authtest.Everybody
	log := &erasedLog{Log: newLog(t)}
	a := newAPIOn(t, log, []agentloop.Agent{writer()}, func(o *httpapi.Options) {
		o.AllowUnauthenticated, o.Auth, o.Identify = false, who.Auth, who.Identify
	})
	begin := func(user string) {
		_, err := a.loop.Start(t.Context(), engine.StartRequest{
			SessionID: "s", UserID: user, AgentType: "writer", Messages: []agentloop.Input{{Content: "hello"}},
		})
		require.NoError(t, err)
	}
	begin("ann")
	log.meanwhile = func() {
		_, err := log.Log.Erase(t.Context(), "s")
		require.NoError(t, err)
		begin("bob")
	}
	got := a.request("DELETE", "/sessions/s", "", bearer("ann")...)
	require.Equal(t, 404, got.status, got.body)
	_, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
}
