package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// behind is the freshness of read models that are being rebuilt.
var behind = readmodel.Fresh{Lag: 7, Rebuilding: true, Problem: "the disk is slow"}

// answering has the server answer as it would of read models, and checks what
// it is asked.
func (s *server) answering(answer any, asked string) {
	s.instead(func(w http.ResponseWriter, r *http.Request) bool {
		want, err := url.ParseQuery(asked)
		if err != nil || want.Encode() != r.URL.Query().Encode() {
			s.t.Errorf("asked %s, not %s", r.URL.RawQuery, asked)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
		return true
	})
}

func listing[T any](item T) api.Listing[T] {
	return api.Listing[T]{Page: api.Page[T]{Items: []T{item}, Total: 3, Offset: 1, Limit: 1, HasMore: true}, Fresh: behind}
}

func requireListing[T any](t *testing.T, item T, got api.Listing[T], err error) {
	t.Helper()
	require.NoError(t, err)
	require.Equal(t, api.Listing[T]{Page: api.Page[T]{Items: []T{item}, Total: 3, Offset: 1, Limit: 1, HasMore: true}, Fresh: behind}, got)
}

// usesListings are those about all sessions together.
var usesListings = map[string]use{
	"GET /runs": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		_, err := c.FindRuns(ctx, client.RunFilter{}, client.Paging{})
		refused(t, err, 501, "NOT_IMPLEMENTED")
		run := readmodel.Run{SessionID: "s", RootSessionID: "r", Run: projector.Run{RunID: "run-1"}, Used: readmodel.Used{ToolCalls: 2}}
		s.answering(listing(run), "sessionId=s&userId=u&agentType=a&status=failed&from=1000&to=2000&offset=1&limit=1")
		got, err := c.FindRuns(ctx, client.RunFilter{
			SessionID: "s", UserID: "u", AgentType: "a", Status: fact.RunFailed, From: time.UnixMilli(1000), To: time.UnixMilli(2000),
		}, client.Paging{Offset: 1, Limit: 1})
		requireListing(t, run, got, err)
	},
	"GET /usage": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		report := readmodel.UsageReport{By: readmodel.ByDay, Rows: []readmodel.UsageRow{{Key: "2026-01-31", CostUSD: 1.5, Unpriced: []string{"m"}}}}
		s.answering(api.UsageReport{UsageReport: report, Fresh: behind}, "by=day&sessionId=s&userId=u&agentType=a&from=1000")
		got, err := c.UsageBy(ctx, readmodel.ByDay, client.UsageFilter{SessionID: "s", UserID: "u", AgentType: "a", From: time.UnixMilli(1000)})
		require.NoError(t, err)
		require.Equal(t, api.UsageReport{UsageReport: report, Fresh: behind}, got)
	},
	"GET /search": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		hit := readmodel.Hit{SessionID: "s", Kind: readmodel.HitToolCall, Role: projector.RoleAssistant, Snippet: "fog", Sequence: 3}
		s.answering(listing(hit), `q=%22a+b%22&sessionId=s&userId=u&agentType=a&offset=1&limit=1`)
		got, err := c.Search(ctx, `"a b"`, client.SearchFilter{SessionID: "s", UserID: "u", AgentType: "a"}, client.Paging{Offset: 1, Limit: 1})
		requireListing(t, hit, got, err)
	},
	"GET /parked": func(t *testing.T, ctx context.Context, s *server, c *client.Client) {
		parked := readmodel.Parked{SessionID: "s", Sequence: 3, Type: "odd", Reason: "why", Stuck: true}
		s.answering(listing(parked), "sessionId=s")
		got, err := c.Parked(ctx, "s", client.Paging{})
		requireListing(t, parked, got, err)
	},
}
