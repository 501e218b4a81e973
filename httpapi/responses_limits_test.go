package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/responses"
)

// Responses and conversations count against the quotas of their tenant, an erasure is logged, each
// request's record says who asked for it, and metrics name the protocol. Errors are OpenAI's.
func TestResponsesLimitsAuditAndMetrics(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, withUsers, withLimits(t, quota.Limits{Sessions: 2}, writer()), func(o *httpapi.Options) {
		o.Protocols.Responses = &responses.Options{}
	})
	const body = `{"model":"writer","input":"hello"}`
	var ids []string
	for range 2 {
		var made struct{ ID, Status string }
		got := a.post("/v1/responses", body, bearer("ann")...)
		require.Equal(t, 200, got.status, got.body)
		require.NoError(t, json.Unmarshal([]byte(got.body), &made))
		require.Equal(t, "completed", made.Status)
		ids = append(ids, made.ID)
	}
	failsAs := func(got answer, status int, kind, code string) {
		t.Helper()
		require.Equal(t, status, got.status, got.body)
		var e struct {
			Error map[string]any `json:"error"`
		}
		require.NoError(t, json.Unmarshal([]byte(got.body), &e))
		require.Len(t, e.Error, 4, got.body)
		require.Equal(t, kind, e.Error["type"])
		require.Equal(t, code, e.Error["code"])
		require.NotEmpty(t, e.Error["message"])
	}
	for _, path := range []string{"/v1/responses", "/v1/conversations"} {
		failsAs(a.post(path, body, bearer("ann")...), 429, "rate_limit_error", "rate_limit_exceeded")
		require.Equal(t, 200, a.post(path, body, bearer("bob")...).status)
	}
	failsAs(a.post("/v1/responses", body), 401, "authentication_error", "invalid_api_key")
	require.Equal(t, 405, a.request("PUT", "/v1/responses", body, bearer("ann")...).status)

	require.Equal(t, 404, a.request("DELETE", "/v1/responses/"+ids[0], "", bearer("bob")...).status)
	require.Equal(t, 200, a.request("DELETE", "/v1/responses/"+ids[0], "", bearer("ann")...).status)
	require.Equal(t, 1, strings.Count(a.logs.String(), `msg="response deleted"`))
	session, _, _ := strings.Cut(strings.TrimPrefix(ids[0], "resp_"), "_")
	require.Contains(t, a.logs.String(), ` session=`+session+` address=127.0.0.1 caller="ann's token" user=ann`)
	require.False(t, a.exists(session))
	require.Subset(t, a.samples(bearer("plain")...), []string{
		`helixd_http_requests_total{method="POST",protocol="responses",route="/v1/responses",status="2xx"} 3`,
		`helixd_http_requests_total{method="DELETE",protocol="responses",route="/v1/responses/{responseId}",status="2xx"} 1`,
	})

	session, _, _ = strings.Cut(strings.TrimPrefix(ids[1], "resp_"), "_")
	asked := 0
	for r, err := range a.log.Read(a.ctx(), session, 0, 0) {
		require.NoError(t, err)
		if r.Type != (*fact.RunRequested)(nil).Type() {
			continue
		}
		f, err := r.Fact()
		require.NoError(t, err)
		require.Equal(t, "ann's token", fact.ActorIn(f).Token)
		asked++
	}
	require.Equal(t, 1, asked)
}

// What a client stores in a conversation without a run counts against the bytes of its tenant,
// and a conversation can be deleted beyond that limit.
func TestItemsAndMetadataCountAgainstBytes(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, withUsers, withLimits(t, quota.Limits{Bytes: 10_000}, writer()), func(o *httpapi.Options) { o.Protocols.Responses = &responses.Options{} })
	got := a.post("/v1/conversations", `{}`, bearer("ann")...)
	require.Equal(t, 200, got.status, got.body)
	var made struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(got.body), &made))
	path := "/v1/conversations/" + made.ID
	items := func(n int) string {
		return `{"items":[{"role":"user","content":"` + strings.Repeat("x", n) + `"}]}`
	}
	require.Equal(t, 429, a.post(path+"/items", items(12_000), bearer("ann")...).status)
	require.Equal(t, 200, a.post(path+"/items", items(9000), bearer("ann")...).status)
	metadata := `{"metadata":{"a":"` + strings.Repeat("x", 500) + `","b":"` + strings.Repeat("x", 500) + `"}}`
	require.Equal(t, 429, a.post(path, metadata, bearer("ann")...).status)
	require.Equal(t, 200, a.request("DELETE", path, "", bearer("ann")...).status)
}

// A request that waits for its response holds a place as one that streams it does: a caller has
// so many at a time.
func TestWaitingForAResponseCountsAsAStream(t *testing.T) {
	t.Parallel()
	slow := agentloop.Agent{Name: "slow", Tools: []agentloop.Tool{{Name: "nap", Execute: func(ctx context.Context, _ *agentloop.Call, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}}}, Model: scripted.New(saying("late", calling("c", "nap", `{}`)), nil)}
	a := newAPIOn(t, memory.New(), []agentloop.Agent{slow}, func(o *httpapi.Options) {
		o.Protocols.Responses, o.MaxStreams = &responses.Options{}, 1
	})
	ask := func(more string) answer { return a.post("/v1/responses", `{"model":"slow","input":"x"`+more+`}`) }
	ctx, leave := context.WithCancel(a.ctx())
	waiting := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", a.http.URL+"/v1/responses", strings.NewReader(`{"model":"slow","input":"x"}`))
		if err == nil {
			_, err = http.DefaultClient.Do(r) //nolint:bodyclose // it fails: the client leaves before
		}
		waiting <- err
	}()
	require.Eventually(t, func() bool { return len(a.contents()) == 1 }, within, time.Millisecond)
	refused := ask("")
	require.Equal(t, 429, refused.status, refused.body)
	require.Equal(t, 200, ask(`,"background":true`).status, "it does not wait")
	leave()
	require.ErrorIs(t, <-waiting, context.Canceled)
}
