package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
)

// Streams count against the quotas of their tenant, callers have so many live reads at a time, what
// no record says is logged, each record says who asked for it, and metrics name the protocol.
func TestDurableLimitsAuditAndMetrics(t *testing.T) {
	t.Parallel()
	a := durableAPI{newAPIOn(t, memory.New(), nil, withUsers, withLimits(t, quota.Limits{Bytes: 10_000, Sessions: 2}), speaking, func(o *httpapi.Options) { o.MaxStreams = 1 })}
	as := func(user string, headers ...string) []string {
		return append(append([]string{"Content-Type", plain}, bearer(user)...), headers...)
	}
	for _, name := range []string{"s", "other"} {
		require.Equal(t, 201, a.send("PUT", name, "one", as("ann")...).status)
	}
	refused := a.send("PUT", "third", "", as("ann")...)
	require.JSONEq(t, `{"quota":"sessions","limit":2}`, detailOf(t, answer(refused), api.CodeQuotaExceeded))
	refused = a.send("POST", "s", strings.Repeat("x", 12_000), as("ann")...)
	require.JSONEq(t, `{"quota":"bytes","limit":10000}`, detailOf(t, answer(refused), api.CodeQuotaExceeded))
	require.Equal(t, "one", a.send("GET", "s", "", as("ann")...).body)
	require.Equal(t, 204, a.send("POST", "s", strings.Repeat("x", 5000), as("ann")...).status)
	require.Equal(t, 204, a.send("POST", "s", "", as("ann", "Stream-Closed", "true")...).status)
	require.Equal(t, 201, a.send("PUT", "bobs", strings.Repeat("x", 12_000), as("bob")...).status)

	live := a.stream("/v1/stream/bobs?live=sse&offset=-1", bearer("bob")...)
	_, err := live.r.ReadString('\n') // it has begun
	require.NoError(t, err)
	for _, mode := range []string{"sse", "long-poll"} {
		require.Equal(t, 429, a.send("GET", "bobs?live="+mode+"&offset=now", "", as("bob")...).status, mode)
	}
	require.Contains(t, a.samples(bearer("plain")...), `helixd_sse_clients{protocol="durable-streams",route="/v1/stream/{path}"} 1`)

	require.Equal(t, 404, a.send("DELETE", "bobs", "", as("ann")...).status)
	require.Equal(t, 204, a.send("DELETE", "bobs", "", as("bob")...).status)
	const deleted = `msg="durable stream deleted"`
	require.Equal(t, 1, strings.Count(a.logs.String(), deleted))
	require.Contains(t, a.logs.String(), deleted+` route=/v1/stream/{path} session=~stream/bobs address=127.0.0.1 caller="bob's token" user=bob`)
	require.Subset(t, a.samples(bearer("plain")...), []string{
		`helixd_http_requests_total{method="PUT",protocol="durable-streams",route="/v1/stream/{path}",status="2xx"} 3`,
		`helixd_http_requests_total{method="PUT",protocol="durable-streams",route="/v1/stream/{path}",status="4xx"} 1`,
	})
	for r, err := range a.log.Read(a.ctx(), eventlog.DurableLogID("s"), 0, 0) {
		require.NoError(t, err)
		f, err := r.Fact()
		require.NoError(t, err)
		require.Equal(t, "ann's token", fact.ActorIn(f).Token, r.Type)
	}
}

// A fork of a stream stores a record in its source, also if the fork itself is refused: it counts
// against the limit of bytes as what is appended.
func TestForksCountAgainstBytes(t *testing.T) {
	t.Parallel()
	a := durableAPI{newAPIOn(t, memory.New(), nil, withUsers, withLimits(t, quota.Limits{Bytes: 10_000}), speaking)}
	as := append([]string{"Content-Type", plain}, bearer("ann")...)
	require.Equal(t, 201, a.send("PUT", "s", strings.Repeat("x", 8000), as...).status)
	for a.send("POST", "s", "x", as...).status == 204 { // until it is full
	}
	before, err := a.log.Head(a.ctx(), eventlog.DurableLogID("s"))
	require.NoError(t, err)
	for _, name := range []string{"f1", "f2"} {
		refused := a.send("PUT", name, "", append(as, "Stream-Forked-From", "/v1/stream/s")...)
		require.JSONEq(t, `{"quota":"bytes","limit":10000}`, detailOf(t, answer(refused), api.CodeQuotaExceeded))
	}
	after, err := a.log.Head(a.ctx(), eventlog.DurableLogID("s"))
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing was stored")
}

// A browser keeps answers of streams for their URL. It must not give one caller's to another.
func TestDurableAnswersVaryByCaller(t *testing.T) {
	t.Parallel()
	a := durableAPI{newAPIOn(t, memory.New(), nil, withUsers, speaking)}
	as := append([]string{"Content-Type", plain}, bearer("ann")...)
	require.Equal(t, 201, a.send("PUT", "s", "one", as...).status)
	got := a.send("GET", "s?offset=-1", "", bearer("ann")...)
	require.Equal(t, 200, got.status)
	require.Contains(t, strings.Join(got.header.Values("Vary"), ", "), "Authorization")
}
