package daemon

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
)

// TestTenantMetrics: tenants with limits by their names are shown by these, others
// together, and callers without a tenant not at all. A reload changes which these are.
func TestTenantMetrics(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	provider := modeltest.ServeFunc(t, func([]byte) modeltest.Stream {
		return modeltest.Events(`{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150}}`, "[DONE]")
	})
	rest := `
public: [/metrics]
agents: {speaker: {model: {provider: openai, name: tiny, apiKey: none, baseURL: "` + provider.URL + `"}}}
prices: {tiny: {input: 10000, output: 20000}}
auth:
  tokens:
    - {token: red, tenant: red, operations: ["*"], sessions: ["red-*"]}
    - {token: blue, tenant: blue, operations: ["*"], sessions: ["blue-*"]}
    - {token: none}
`
	path := clitest.Config(t, rest+"tenants: {default: {sessions: 1}, red: {sessions: 2, tokensPerDay: 1000000, streams: 1}}\n")
	d := serveFile(t, path, io.Discard, nil)
	status, answer := ask(t, http.MethodPost, d.URL+"/sessions/red-open/chunks", "red", "",
		`{"type":"text_delta","agentId":"red-open","agentType":"x","step":0,"timestamp":1,"delta":"hi"}`)
	require.Equal(t, 200, status, answer)
	for _, tenant := range []string{"red", "blue", "none"} {
		for i, want := range []int{200, 429, 429} {
			if tenant == "none" {
				want = 200
			}
			status, answer := ask(t, http.MethodPost, d.URL+"/start", tenant, "", `{"sessionId":"`+tenant+"-"+string('a'+rune(i))+`","agentType":"speaker","message":"go"}`)
			require.Equal(t, want, status, answer)
		}
	}
	comes(t, d, 150, "helixd_tenant_day_tokens", "tenant", "red")
	comes(t, d, 2, "helixd_tenant_sessions", "tenant", "red")
	comes(t, d, 0, "helixd_tenant_runs", "tenant", "red")
	seen := scrape(t, d)
	require.InDelta(t, 2, seen.value("helixd_tenant_day_usd", "tenant", "red"), 1e-9, "100 and 50 of a million tokens each")
	require.Positive(t, seen.value("helixd_tenant_stored_bytes", "tenant", "red"))
	require.EqualValues(t, 2, seen.value("helixd_tenant_refused_total", "tenant", "red", "limit", "sessions"))
	require.EqualValues(t, 2, seen.value("helixd_tenant_refused_total", "tenant", "other", "limit", "sessions"))
	require.Len(t, seen["helixd_tenant_refused_total"].GetMetric(), 2)
	require.Len(t, seen["helixd_tenant_sessions"].GetMetric(), 1, "only red has limits by its name")

	ctx, leave := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL+"/sse?sessionId=red-open", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer red")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	comes(t, d, 1, "helixd_tenant_streams", "tenant", "red")
	status, answer = ask(t, http.MethodGet, d.URL+"/sse?sessionId=red-open", "red", "", "")
	require.Equal(t, 429, status, answer)
	require.EqualValues(t, 1, scrape(t, d).value("helixd_tenant_refused_total", "tenant", "red", "limit", "streams"))
	leave()
	comes(t, d, 0, "helixd_tenant_streams", "tenant", "red")

	rewrite(t, path, rest+"tenants: {blue: {sessions: 1}}\n")
	reloaded(t, d, "none", 200)
	comes(t, d, 1, "helixd_tenant_sessions", "tenant", "blue")
	comes(t, d, -1, "helixd_tenant_sessions", "tenant", "red")
	require.EqualValues(t, -1, scrape(t, d).value("helixd_tenant_day_tokens"))
}

// brokenDays can't be read while broken is set.
type brokenDays struct {
	quota.Memory
	broken bool
}

func (d *brokenDays) Load(ctx context.Context, key string) ([]byte, uint64, error) {
	if d.broken {
		return nil, 0, errors.New("no leader")
	}
	return d.Memory.Load(ctx, key)
}

// What a tenant uses of a limit, and the finding, stay while nobody can say what it uses.
func TestTenantFindingsStay(t *testing.T) {
	var days brokenDays
	limits := quota.New(quota.Tenants{Named: map[string]quota.Limits{"red": {TokensPerDay: 100}, "blue": {Sessions: 1}}}, nil, &days)
	m := newTenantMetrics(prometheus.NewPedanticRegistry())
	days.broken = true
	require.Empty(t, m.look(t.Context(), limits, nil))
	require.Zero(t, testutil.CollectAndCount(m.used), "nothing is known yet")
	days.broken = false
	call, err := limits.Reserve(t.Context(), "red", "s", "c", "tiny", fact.TokenUsage{Prompt: 1})
	require.NoError(t, err)
	require.NoError(t, call.Settle(t.Context(), "tiny", fact.TokenUsage{Prompt: 100}))
	for _, days.broken = range []bool{false, true, false} {
		found := m.look(t.Context(), limits, nil)
		require.Len(t, found, 1)
		require.Equal(t, "the tenant red uses 100 % of its limit tokensPerDay", found[0].Found)
		require.InDelta(t, 1, testutil.ToFloat64(m.used.WithLabelValues("red", quota.TokensPerDay)), 0)
	}
	days.broken = true
	limits.Set(quota.Tenants{Named: map[string]quota.Limits{"red": {TokensPerDay: 200}}})
	require.Empty(t, m.look(t.Context(), limits, nil), "its limit has been raised")
	require.InDelta(t, 0.5, testutil.ToFloat64(m.used.WithLabelValues("red", quota.TokensPerDay)), 0)
}
