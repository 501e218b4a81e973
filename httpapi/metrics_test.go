package httpapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
)

// samples are the lines of GET /metrics that are samples; the answer must be
// what Prometheus can read.
func (a *testAPI) samples(headers ...string) []string {
	a.t.Helper()
	got := a.request("GET", "/metrics", "", headers...)
	require.Equal(a.t, 200, got.status, got.body)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	_, err := parser.TextToMetricFamilies(strings.NewReader(got.body))
	require.NoError(a.t, err)
	return strings.Split(got.body, "\n")
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	a.append("s", created("s"))
	for range 3 {
		require.Equal(t, 200, a.get("/sessions/s").status)
	}
	require.Equal(t, 404, a.get("/sessions/other").status)
	require.Equal(t, 200, a.request("HEAD", "/sessions/s", "").status)
	require.Equal(t, 404, a.get("/no/such/route").status)
	require.Equal(t, 405, a.post("/sessions/s", "{}").status)
	text := a.samples()
	require.Subset(t, text, []string{
		`helixd_http_requests_total{method="GET",protocol="helixd",route="/sessions/{id}",status="2xx"} 3`,
		`helixd_http_requests_total{method="GET",protocol="helixd",route="/sessions/{id}",status="4xx"} 1`,
		`helixd_http_requests_total{method="HEAD",protocol="helixd",route="/sessions/{id}",status="2xx"} 1`,
		`helixd_http_requests_total{method="GET",protocol="helixd",route="other",status="4xx"} 1`,
		`helixd_http_requests_total{method="POST",protocol="helixd",route="other",status="4xx"} 1`,
		`helixd_http_request_duration_seconds_count{method="GET",protocol="helixd",route="/sessions/{id}"} 4`,
	})

	stream := a.open("GET", "/sse?sessionId=s", "")
	shows := func(line string) {
		t.Helper()
		require.Eventually(t, func() bool {
			return strings.Contains(strings.Join(a.samples(), "\n")+"\n", line+"\n")
		}, within, 10*time.Millisecond, line)
	}
	shows(`helixd_sse_clients{protocol="helixd",route="/sse"} 1`)
	stream.cancel()
	shows(`helixd_sse_clients{protocol="helixd",route="/sse"} 0`)
	shows(`helixd_http_requests_total{method="GET",protocol="helixd",route="/sse",status="2xx"} 1`)
	problems, err := testutil.GatherAndLint(a.reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestMetricsStayFew: whatever callers send, there are not many time series.
func TestMetricsStayFew(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil)
	for i := range 300 {
		a.request(fmt.Sprint("ODD", i), "/sse?sessionId=x", "")
		a.get(fmt.Sprintf("/odd%d", i))
		a.get(fmt.Sprintf("/sessions/odd%d/state", i))
		a.post("/start", fmt.Sprintf(`{"sessionId":"odd%d","agentType":"odd%d","message":"hi"}`, i, i))
	}
	text := strings.Join(a.samples(), "\n")
	require.NotContains(t, strings.ToLower(text), "odd")
	require.Less(t, strings.Count(text, "\nhelixd_http_requests_total{"), 10)
}
