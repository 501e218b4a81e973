package integration_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/api"
	helixclient "github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector/readmodel"
)

// costly is a provider of the model "big", whose answer is said to have cost
// 1,000 tokens in and 100 out.
func costly(t *testing.T) (url string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","model":"big","choices":[{"index":0,"delta":{"role":"assistant","content":"The harbour is foggy."}}]}`+"\n\n"+
			`data: {"id":"1","object":"chat.completion.chunk","model":"big","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"id":"1","object":"chat.completion.chunk","model":"big","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100}}`+"\n\n"+
			"data: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestListings: what runs have done is listed, summed, priced and found, by
// each token within its sessions, by commands and over HTTP.
func TestListings(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(`
auth:
  tokens:
    - {token: all, name: all, operations: ["*"], sessions: ["*"]}
    - {token: ann, name: ann, operations: [sessions, search], sessions: ["ann-*"]}
prices:
  big: {input: 2, output: 10}
agents:
  talker: {model: {provider: openai, name: big, apiKey: k, baseURL: %q}}
  mute: {model: {provider: scripted, script: [{text: never mind}]}}
`, costly(t))), 0o600))
	d := newDaemon(t, "serve", "--config", file, "--data-dir", filepath.Join(dir, "data"))
	d.start()
	c := helixclient.New(d.url, &helixclient.Options{Token: helixclient.StaticToken("all")})
	for session, agent := range map[string]string{"ann-1": "talker", "ann-2": "mute", "bob-1": "talker"} {
		_, err := c.Start(t.Context(), helixclient.StartRequest{
			SessionID: session, AgentType: agent, Messages: helixclient.Text("How is " + session + "?"),
			UserID: session[:3], Tags: []string{"t-" + agent},
		})
		require.NoError(t, err)
		for _, err := range c.Stream(t.Context(), session, 0) {
			require.NoError(t, err)
		}
	}
	ask := func(token string, into any, args ...string) {
		t.Helper()
		var out string
		require.Eventually(t, func() bool { // the rows may lag for a moment
			out = helixd(t, append(args, "--json", "--server", d.url, "--token", token)...)
			var fresh readmodel.Fresh
			require.NoError(t, json.Unmarshal([]byte(out), &fresh), out)
			return fresh.Current
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, json.Unmarshal([]byte(out), into), out)
	}
	sessions := func(token string, args ...string) (ids []string) {
		t.Helper()
		var page api.Listing[api.Summary]
		ask(token, &page, append([]string{"sessions"}, args...)...)
		require.Len(t, page.Items, page.Total)
		for _, s := range page.Items {
			ids = append(ids, s.SessionID)
		}
		return ids
	}
	require.Equal(t, []string{"ann-1", "ann-2", "bob-1"}, sessions("all"))
	require.Equal(t, []string{"ann-1", "ann-2"}, sessions("ann"))
	require.Equal(t, []string{"ann-1", "ann-2"}, sessions("all", "--user", "ann"))
	require.Equal(t, []string{"ann-1"}, sessions("ann", "--tag", "t-talker", "--status", "completed", "--agent", "talker"))
	require.Empty(t, sessions("ann", "--user", "bob"))

	var runs api.Listing[readmodel.Run]
	ask("all", &runs, "runs", "--agent", "talker", "--status", "completed")
	require.Equal(t, 2, runs.Total)
	require.EqualValues(t, 1100, runs.Items[0].Used.Tokens.Total)

	for by, want := range map[string]map[string]float64{
		"agent": {"talker": 0.006}, "model": {"big": 0.006}, "user": {"ann": 0.003, "bob": 0.003},
	} {
		var usage api.UsageReport
		ask("all", &usage, "usage", "--by", by)
		costs := map[string]float64{}
		for _, row := range usage.Rows {
			if row.CostUSD > 0 {
				costs[row.Key] = row.CostUSD
			}
		}
		require.InDeltaMapValues(t, want, costs, 1e-9, by)
		require.InDelta(t, 0.006, usage.Total.CostUSD, 1e-9)
		ask("ann", &usage, "usage", "--by", by)
		require.InDelta(t, 0.003, usage.Total.CostUSD, 1e-9)
	}

	var hits api.Listing[readmodel.Hit]
	ask("all", &hits, "search", "HARBOUR", "is foggy")
	require.Equal(t, 2, hits.Total)
	ask("ann", &hits, "search", "harbour")
	require.Equal(t, 1, hits.Total)
	require.Equal(t, "ann-1", hits.Items[0].SessionID)

	parked, err := c.Parked(t.Context(), "", helixclient.Paging{})
	require.NoError(t, err)
	require.Empty(t, parked.Items)

	// Erased is not found.
	_ = helixd(t, "erase", "ann-1", "--yes", "--server", d.url, "--token", "all")
	require.Equal(t, []string{"ann-2"}, sessions("ann"))
	ask("ann", &hits, "search", "harbour")
	require.Zero(t, hits.Total)
	d.stop()
}
