package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
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

// replacedLog is a log whose session is erased, and created again, after a request's caller was found to
// be its owner, which takes one look at the session.
type replacedLog struct {
	eventlog.Log
	looks     atomic.Int64
	meanwhile atomic.Pointer[func()] // nil: nothing happens
}

func (l *replacedLog) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	if f := l.meanwhile.Load(); f != nil && l.looks.Add(1) == 2 {
		l.meanwhile.Store(nil)
		(*f)()
	}
	return l.Log.Read(ctx, session, from, to)
}

// A request changes the session that its caller may use, not the next one of the id, which is another tenant's.
func TestARequestLeavesAnotherTenantsNextSession(t *testing.T) {
	t.Parallel()
	var who authtest.Everybody
	log := &replacedLog{Log: newLog(t)}
	a := newAPIOn(t, log, []agentloop.Agent{waiter()}, ofTenants(&who))
	for name, c := range map[string]struct{ target, body string }{
		"interrupt": {"/interrupt", `{"sessionId":"interrupt"}`},
		"abort":     {"/abort", `{"sessionId":"abort"}`},
		"submit":    {"/submit-tool-result", `{"sessionId":"submit","toolCallId":"c","kind":"client-tool-result","result":{}}`},
		"resume":    {"/resume", `{"sessionId":"resume","message":"go on"}`},
		"retry":     {"/resume", `{"sessionId":"retry","mode":"retry"}`},
		"message":   {"/sessions/message/messages", `{"message":"go on"}`},
		"fork":      {"/sessions/fork/fork", `{}`},
	} {
		a.waiting(name, "red")
		var head uint64
		replace := func() {
			_, err := log.Erase(t.Context(), name)
			require.NoError(t, err)
			head = a.waiting(name, "blue")
		}
		log.looks.Store(0)
		log.meanwhile.Store(&replace)
		got := a.request("POST", c.target, c.body, bearer("red")...)
		assert.Nil(t, log.meanwhile.Load(), name)
		assert.Equal(t, 404, got.status, "%s: %s", name, got.body)
		now, err := log.Head(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, head, now, name)
	}
}

// lateBody is a body that a client sends after a while.
type lateBody func() string

func (b lateBody) Read(p []byte) (int, error) { return copy(p, b()), io.EOF }

// The same, if the client has taken its time to send what it asks for.
func TestALateRollbackLeavesAnotherTenantsNextSession(t *testing.T) {
	t.Parallel()
	var who authtest.Everybody
	log := newLog(t)
	a := newAPIOn(t, log, []agentloop.Agent{waiter()}, ofTenants(&who))
	a.waiting("s", "red")
	var head uint64
	r := httptest.NewRequest("POST", "http://localhost/sessions/s/rollback", lateBody(func() string {
		_, err := log.Erase(t.Context(), "s")
		require.NoError(t, err)
		head = a.waiting("s", "blue")
		return fmt.Sprintf(`{"sequence":%7d}`, a.firstSequence("s"))
	}))
	r.ContentLength = int64(len(`{"sequence":1234567}`))
	r.Header.Set("Authorization", "Bearer red")
	got := httptest.NewRecorder()
	a.srv.ServeHTTP(got, r)
	assert.Equal(t, 404, got.Code, got.Body)
	now, err := log.Head(t.Context(), "s")
	require.NoError(t, err)
	assert.Equal(t, head, now)
}

// ofTenants serves callers whose tenant is their token.
func ofTenants(who *authtest.Everybody) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		o.AllowUnauthenticated, o.Auth = false, who.Auth
		o.Identify = func(r *http.Request) (auth.Caller, error) {
			tenant := auth.BearerOf(r)
			return auth.Caller{Name: tenant, Tenant: tenant}, nil
		}
	}
}

// waiting begins a tenant's session, whose run waits for its client. It returns the head.
func (a *testAPI) waiting(session, tenant string) uint64 {
	a.t.Helper()
	h, err := a.loop.Execute(a.ctx(), engine.StartRequest{
		SessionID: session, Tenant: tenant, AgentType: "waiter", Messages: []agentloop.Input{{Content: "hello"}},
	})
	require.NoError(a.t, err)
	_, err = h.Result(a.ctx())
	require.NoError(a.t, err)
	head, err := a.log.Head(a.ctx(), session)
	require.NoError(a.t, err)
	return head
}
