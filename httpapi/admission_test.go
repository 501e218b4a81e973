package httpapi_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

func withTenants(t quota.Tenants) func(*httpapi.Options) {
	return func(o *httpapi.Options) { o.Quota = quota.New(t, nil, nil) }
}

// Requests of a tenant over its limit are refused, those of other tenants and of
// callers without one are not.
func TestRequestsPerSecond(t *testing.T) {
	t.Parallel()
	q := quota.New(quota.Tenants{Named: map[string]quota.Limits{"red": {RequestsPerSecond: 0.001}}}, nil, nil)
	a := newAPIOn(t, memory.New(), nil, withUsers, func(o *httpapi.Options) { o.Quota = q })
	require.Equal(t, 200, a.get("/sessions", bearer("ann")...).status)
	refused := a.get("/sessions", bearer("ann")...)
	refused.failed(t, 429, api.CodeRateLimited)
	after, err := strconv.Atoi(refused.header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 1000, after, 100)
	a.post("/sessions/s/chunks", chunksBody, bearer("ann")...).failed(t, 429, api.CodeRateLimited)
	require.Equal(t, 200, a.get("/healthz", bearer("ann")...).status, "public")
	for range 3 {
		require.Equal(t, 200, a.get("/sessions", bearer("bob")...).status)
		require.Equal(t, 200, a.get("/sessions", bearer("plain")...).status)
	}
	q.Set(quota.Tenants{})
	require.Equal(t, 200, a.get("/sessions", bearer("ann")...).status, "the limit was lifted")
	q.Set(quota.Tenants{Default: quota.Limits{RequestsPerSecond: 1e6}})
	require.Eventually(t, func() bool { return a.get("/sessions", bearer("ann")...).status == 200 }, within, time.Millisecond)
}

// A caller has so many streams at a time. One that ends makes room for another.
func TestStreamsOfACaller(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withUsers, func(o *httpapi.Options) { o.MaxStreams = 2 })
	a.append("s", factOf("s", &fact.SessionCreated{AgentType: "writer", UserID: "ann", Tenant: "red", Base: factBase("s")}), text("s", "x"))
	open := func() *stream { return a.stream("/sse?sessionId=s", bearer("ann")...) }
	first, second := open(), open()
	first.next()
	second.next()
	for _, target := range []string{
		"/sse?sessionId=s", "/sessions/s/stream", "/sessions/s/replay", "/sessions/s/records?follow=true", "/chat/s/stream",
	} {
		got := a.get(target, bearer("ann")...)
		require.JSONEq(t, `{"quota":"streams","limit":2}`, detailOf(t, got, api.CodeQuotaExceeded), target)
	}
	require.Equal(t, 200, a.get("/sessions/s", bearer("ann")...).status, "no stream")
	third := a.stream("/sse?sessionId=s", bearer("desk")...) // another caller
	third.next()
	first.resp.Body.Close()
	require.Eventually(t, func() bool {
		resp := a.get("/sessions/s/replay?to=1", bearer("ann")...)
		return resp.status == 200
	}, within, 10*time.Millisecond)
}

// A tenant's callers share its streams.
func TestStreamsOfATenant(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil, withUsers, withTenants(quota.Tenants{Default: quota.Limits{Streams: 1}}))
	for user, tenant := range tenants {
		a.append("of-"+user, factOf("of-"+user, &fact.SessionCreated{AgentType: "writer", UserID: user, Tenant: tenant, Base: factBase("of-" + user)}), text("of-"+user, "x"))
	}
	a.stream("/sse?sessionId=of-ann", bearer("ann")...).next()
	a.get("/sse?sessionId=of-ann", bearer("ann")...).failed(t, 429, api.CodeQuotaExceeded)
	a.stream("/sse?sessionId=of-bob", bearer("bob")...).next()
	a.stream("/sse?sessionId=of-bob", bearer("plain")...).next()
	a.stream("/sse?sessionId=of-bob", bearer("plain")...).next()
}

// A POST /chat whose answer can't be streamed changes nothing.
func TestChatOverItsStreams(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), []agentloop.Agent{{Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "hello"}}, nil)}},
		withUsers, withTenants(quota.Tenants{Default: quota.Limits{Streams: 1}}))
	a.append("s", factOf("s", &fact.SessionCreated{AgentType: "writer", UserID: "ann", Tenant: "red", Base: factBase("s")}), text("s", "x"))
	open := a.stream("/sse?sessionId=s", bearer("ann")...)
	open.next()
	chat := func() answer {
		return a.post("/chat", `{"id":"new","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`, bearer("ann")...)
	}
	chat().failed(t, 429, api.CodeQuotaExceeded)
	_, err := a.log.Head(a.ctx(), "new")
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	open.resp.Body.Close()
	require.Eventually(t, func() bool { return chat().status == 200 }, within, 10*time.Millisecond)
}

func detailOf(t *testing.T, got answer, code api.Code) string {
	t.Helper()
	raw, err := json.Marshal(got.failed(t, 429, code).Detail)
	require.NoError(t, err)
	return string(raw)
}
