package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/integration/testkit"
)

// scraped is what a daemon measures, as Prometheus reads it.
type scraped map[string]*dto.MetricFamily

func scrape(t *testing.T, d *Daemon) scraped {
	t.Helper()
	status, text := ask(t, http.MethodGet, d.URL+"/metrics", "", "", "")
	require.Equal(t, http.StatusOK, status, text)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	return families
}

// value is that of a counter or a gauge, or how often a histogram has observed;
// -1 if there is no sample with the labels, which are names and values by turns.
func (s scraped) value(name string, labels ...string) float64 {
	for _, m := range s[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && has[labels[i]] == labels[i+1]
		}
		switch {
		case !fits:
		case m.Histogram != nil:
			return float64(m.Histogram.GetSampleCount())
		case m.Counter != nil:
			return m.Counter.GetValue()
		default:
			return m.Gauge.GetValue()
		}
	}
	return -1
}

// comes waits until a value is what it should be.
func comes(t *testing.T, d *Daemon, want float64, name string, labels ...string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.InDelta(c, want, scrape(t, d).value(name, labels...), 0, "%s %v", name, labels)
	}, time.Minute, 20*time.Millisecond)
}

// start starts what a configuration says; close ends it.
func startConfigured(t *testing.T, path string) *Daemon {
	t.Helper()
	c, err := config.Load(path, os.LookupEnv)
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	agents, err := agentconfig.Agents(c)
	require.NoError(t, err)
	d, err := Start(t.Context(), c, agents, false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(d.close)
	return d
}

// TestMetrics: a run with a tool, one that waits for a person, and one that the
// next process takes over.
func TestMetrics(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"result":"fog"}`)
	}))
	defer tool.Close()
	path := clitest.Config(t, `
auth: {allowUnauthenticated: true}
drainTimeout: 0s
agents:
  weather:
    model: {provider: scripted, name: tiny, script: [{toolCalls: [{id: c, name: look, arguments: {}}]}, {text: It is foggy.}]}
    tools: {look: {http: {url: "`+tool.URL+`"}}}
  janitor:
    model: {provider: scripted, name: tiny, script: [{toolCalls: [{id: c, name: sweep, arguments: {}}]}, {text: done}]}
    tools: {sweep: {http: {url: "`+tool.URL+`"}, requireApproval: true}}
  slow:
    model: {provider: scripted, name: slow, scriptDelay: 10m, script: [{text: a long story}]}
`)
	d := startConfigured(t, path)
	start := func(session, agent string) {
		t.Helper()
		status, answer := ask(t, http.MethodPost, d.URL+"/start", "", "",
			`{"sessionId":"`+session+`","agentType":"`+agent+`","message":"go"}`)
		require.Equal(t, http.StatusOK, status, answer)
	}
	start("w", "weather")
	comes(t, d, 1, "helixd_runs_ended_total", "agent", "weather", "outcome", "completed")
	start("j", "janitor")
	comes(t, d, 1, "helixd_runs_ended_total", "agent", "janitor", "outcome", "suspended_client_tool")
	start("s", "slow")
	comes(t, d, 1, "helixd_model_first_token_seconds", "model", "slow")
	comes(t, d, 1, "helixd_runs_driven")
	comes(t, d, 1, "helixd_hub_sessions")
	comes(t, d, 1, "helixd_followers")
	comes(t, d, 1, "helixd_sessions_suspended", "status", "suspended_client_tool")
	comes(t, d, 0, "helixd_read_model_lag")

	seen := scrape(t, d)
	require.EqualValues(t, 1, seen.value("helixd_tool_calls_total", "tool", "look", "outcome", "ok"))
	require.EqualValues(t, 1, seen.value("helixd_tool_duration_seconds", "tool", "look", "outcome", "ok"))
	require.EqualValues(t, -1, seen.value("helixd_tool_calls_total", "tool", "sweep"), "it waits")
	require.EqualValues(t, 3, seen.value("helixd_model_duration_seconds", "model", "tiny", "outcome", "ok"))
	require.Positive(t, seen.value("helixd_append_duration_seconds", "mode", "interval"))
	require.Positive(t, seen.value("helixd_catch_up_reads_total", "cause", "join"))
	require.Positive(t, seen.value("helixd_fold_records_total"))
	require.EqualValues(t, 1, seen.value("helixd_durability_info", "durability", "interval=1s", "mode", "interval"))
	require.EqualValues(t, 3, seen.value("helixd_http_requests_total", "route", "/start", "status", "2xx"))
	require.EqualValues(t, 1, seen.value("helixd_build_info"))
	require.EqualValues(t, 0, seen.value("helixd_log_refuses"))
	require.EqualValues(t, 0, seen.value("helixd_takeovers_total"))
	require.Positive(t, seen.value("go_goroutines"))
	require.Positive(t, seen.value("process_start_time_seconds"))

	d.close()
	d = startConfigured(t, path)
	comes(t, d, 1, "helixd_takeovers_total")
	comes(t, d, 1, "helixd_queue_nodes")
}

// TestMetricsOff: there are none, or only for some.
func TestMetricsOff(t *testing.T) {
	t.Parallel()
	d := startConfigured(t, clitest.Config(t, "auth: {allowUnauthenticated: true}\nmetrics: {enabled: false}\n"))
	status, answer := ask(t, http.MethodGet, d.URL+"/metrics", "", "", "")
	require.Equal(t, http.StatusNotImplemented, status, answer)

	d = startConfigured(t, clitest.Config(t, `
auth: {tokens: [{token: all}, {token: scraper, operations: [metrics]}, {token: other, operations: [status]}]}
`))
	for token, want := range map[string]int{"": 401, "wrong": 401, "other": 403, "scraper": 200, "all": 200} {
		status, answer := ask(t, http.MethodGet, d.URL+"/metrics", token, "", "")
		require.Equal(t, want, status, "%s: %s", token, answer)
	}
	d = startConfigured(t, clitest.Config(t, "auth: {tokens: [{token: all}]}\npublic: [/metrics]\n"))
	status, answer = ask(t, http.MethodGet, d.URL+"/metrics", "", "", "")
	require.Equal(t, http.StatusOK, status, answer)
}

// TestMetricsWithoutTheLog: when its server has gone, metrics are shown all the
// same: nobody asks it for them.
func TestMetricsWithoutTheLog(t *testing.T) {
	t.Parallel()
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(time.Minute))
	path := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil,
		"listen: 127.0.0.1:0\ndataDir: %s\ndrainTimeout: 0s\nauth: {allowUnauthenticated: true}\nnats: {url: %q}\n",
		t.TempDir(), srv.ClientURL()), 0o600))
	d := startConfigured(t, path)
	require.EqualValues(t, 1, scrape(t, d).value("helixd_durability_info", "mode", "unknown"))
	srv.Shutdown()
	srv.WaitForShutdown()
	for range 20 {
		require.EqualValues(t, 1, scrape(t, d).value("helixd_durability_info", "mode", "unknown"))
	}
}

// TestMetricsLint: names, units and texts are as Prometheus wants them.
func TestMetricsLint(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	register(reg)
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// TestMetricsStayFew: a thousand odd agents, methods, routes and sessions make
// no time their own series.
func TestMetricsStayFew(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	d := startConfigured(t, clitest.Config(t, "auth: {allowUnauthenticated: true}\n"))
	samples := func() (n int) {
		for _, f := range scrape(t, d) {
			n += len(f.GetMetric())
		}
		return n
	}
	hostile := func(i int) {
		odd, err := json.Marshal(fmt.Sprintf("odd%d", i))
		require.NoError(t, err)
		ask(t, http.MethodPost, d.URL+"/start", "", "", fmt.Sprintf(`{"sessionId":%s,"agentType":%s,"message":"hi"}`, odd, odd))
		ask(t, fmt.Sprint("ODD", i), d.URL+"/sse", "", "", "")
		ask(t, http.MethodGet, fmt.Sprintf("%s/odd/%d", d.URL, i), "", "", "")
		ask(t, http.MethodGet, fmt.Sprintf("%s/sessions/odd%d", d.URL, i), "", "", "")
		ask(t, http.MethodPost, fmt.Sprintf("%s/sessions/odd%d/chunks", d.URL, i), "", "", `{"type":"odd"}`)
	}
	hostile(0)
	before := samples()
	for i := range 1000 {
		hostile(i + 1)
	}
	// What the daemon does beside has its own few.
	require.InDelta(t, before, samples(), 50)
	_, text := ask(t, http.MethodGet, d.URL+"/metrics", "", "", "")
	require.NotContains(t, strings.ToLower(text), "odd")
}
