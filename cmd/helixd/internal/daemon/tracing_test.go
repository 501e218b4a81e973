package daemon

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/agentconfig"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
)

// collector takes spans over OTLP/HTTP from those who know the key.
type collector struct {
	*httptest.Server
	mu        sync.Mutex
	spans     []*trace.Span
	resources []string
	paths     []string
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Basic hunter2" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			zipped, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = zipped
		}
		raw, err := io.ReadAll(body)
		request := new(v1.ExportTraceServiceRequest)
		if err == nil {
			err = proto.Unmarshal(raw, request)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.paths = append(c.paths, r.Method+" "+r.URL.Path)
		for _, of := range request.ResourceSpans {
			c.resources = append(c.resources, fmt.Sprint(of.Resource))
			for _, scope := range of.ScopeSpans {
				c.spans = append(c.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// runTraced runs a session of an agent with an HTTP tool on a daemon until the
// daemon has stopped, and returns what the daemon has logged and what header
// traceparent the tool has seen.
func (c *collector) runTraced(t *testing.T, tracing string) (logged, seen string) {
	t.Helper()
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Traceparent")
		fmt.Fprint(w, `{"result":1}`)
	}))
	defer tool.Close()
	path := filepath.Join(t.TempDir(), "helix.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`listen: 127.0.0.1:0
durability: interval=1s
auth: {allowUnauthenticated: true}
tracing: `+tracing+`
agents:
  a:
    model: {provider: scripted, script: [{toolCalls: [{name: look}]}, {text: done}]}
    tools: {look: {inputSchema: {type: object}, http: {url: "`+tool.URL+`"}}}
`), 0o600))
	cfg, err := config.Load(path, func(name string) (string, bool) { return "Basic hunter2", name == "OTLP_KEY" })
	require.NoError(t, err)
	cfg.DataDir = t.TempDir()
	agents, err := agentconfig.Agents(cfg)
	require.NoError(t, err)
	log := &logBuffer{}
	d, err := Start(t.Context(), cfg, agents, false, flags.NewLogger(log, cfg.Log))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx, nil) }()
	req, err := http.NewRequest(http.MethodPost, d.URL+"/start", strings.NewReader(`{"sessionId":"x","agentType":"a","message":"a secret"}`))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Traceparent", "00-0102030405060708090a0b0c0d0e0f10-0102030405060708-01")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Eventually(t, func() bool {
		resp, err := http.Get(d.URL + "/status?sessionId=x")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(body), `"status":"completed"`)
	}, time.Minute, 10*time.Millisecond)
	stop()
	require.NoError(t, <-stopped)
	tool.Close() // it waits for what it serves
	c.Close()
	return log.String(), seen
}

func TestTracesReachACollector(t *testing.T) {
	c := newCollector(t)
	logged, seen := c.runTraced(t, `{endpoint: "`+c.URL+`/api/public/otel", headers: {Authorization: env:OTLP_KEY}}`)
	require.NotContains(t, logged, "traces")
	require.Contains(t, c.paths, "POST /api/public/otel/v1/traces")
	require.Contains(t, c.resources[0], "helixd")
	named := map[string][]*trace.Span{}
	id := engine.TraceID("x")
	for _, s := range c.spans {
		require.Equal(t, id[:], s.TraceId, s.Name)
		require.NotContains(t, s.String(), "a secret")
		named[s.Name] = append(named[s.Name], s)
	}
	require.Len(t, named["invoke_agent a"], 1)
	require.Len(t, named["chat scripted"], 2)
	require.Len(t, named["execute_tool look"], 1)
	run, call := named["invoke_agent a"][0], named["execute_tool look"][0]
	require.Equal(t, run.SpanId, call.ParentSpanId)
	require.Len(t, run.Links, 1)
	require.Equal(t, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, run.Links[0].TraceId)
	require.Equal(t, fmt.Sprintf("00-%s-%x-01", id, call.SpanId), seen, "the tool can continue the trace")
}

func TestTracesWithContent(t *testing.T) {
	c := newCollector(t)
	c.runTraced(t, `{endpoint: "`+c.URL+`", headers: {Authorization: env:OTLP_KEY}, content: true}`)
	require.Contains(t, fmt.Sprint(c.spans), "a secret")
}

func TestNoSessionIsTraced(t *testing.T) {
	c := newCollector(t)
	c.runTraced(t, `{endpoint: "`+c.URL+`", headers: {Authorization: env:OTLP_KEY}, sampleRatio: 0}`)
	require.Empty(t, c.spans)
}

// A collector that refuses or is not there is no run's concern, and no secret
// of it is logged.
func TestACollectorThatFails(t *testing.T) {
	c := newCollector(t)
	logged, _ := c.runTraced(t, `{endpoint: "`+c.URL+`", headers: {Authorization: hunter3}}`)
	require.Equal(t, 1, strings.Count(logged, "traces can't be exported"), logged)
	require.NotContains(t, logged, "hunter3")
	require.Empty(t, c.spans)
}
