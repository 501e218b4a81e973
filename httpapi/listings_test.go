package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/projector/readmodel"
)

// behind is the freshness of rows that can't keep up.
var behind = readmodel.Fresh{Lag: 7, Rebuilding: true, Problem: "open /secret/readmodels.db: the disk is full"}

// toldBehind is the part of it that callers see.
var toldBehind = readmodel.Fresh{Lag: 7, Rebuilding: true, Problem: "the read models do not get on; the server's log says why"}

// saidRows answer with given values, and record the queries.
type saidRows struct {
	foldedRows
	fresh readmodel.Fresh
	err   error
	asked any
}

// said is an answer of one row.
func said[T any](s *saidRows, asked any, row T, p readmodel.Paging) (readmodel.Answer[readmodel.Page[T]], error) {
	s.asked = asked
	page := rowsPage([]T{row}, p)
	page.Fresh = s.fresh
	return page, s.err
}

var saidUsed = readmodel.Used{
	ModelCalls: 2, ToolCalls: 3, FailedToolCalls: 1,
	Tokens: fact.TokenUsage{Prompt: 10, Completion: 5, Reasoning: 1, Cached: 2, CacheWrite: 1, Total: 15},
}

func (s *saidRows) Sessions(_ context.Context, f readmodel.SessionFilter) (readmodel.Answer[readmodel.Page[readmodel.Session]], error) {
	f.Visible = nil
	return said(s, f, readmodel.Session{
		SessionID: "s-sub-c", RootSessionID: "s", ParentSessionID: "s", StreamID: "s", AgentType: "writer", Status: projector.SessionActive,
		StreamStatus: eventlog.StreamActive, UserID: "u", CreatedAt: 1, UpdatedAt: 2, HeadSequence: 9, Counts: readmodel.Counts{Messages: 1, Parked: 2},
	}, f.Paging)
}

func (s *saidRows) Runs(_ context.Context, f readmodel.RunFilter) (readmodel.Answer[readmodel.Page[readmodel.Run]], error) {
	f.Visible = nil
	return said(s, f, readmodel.Run{
		SessionID: "s", RootSessionID: "s", AgentType: "writer", UserID: "u", Used: saidUsed,
		Run: projector.Run{RunID: "r", Turn: 1, Mode: fact.ModeStart, Status: fact.RunCompleted, StartedAt: 1, CompletedAt: 2, Truncated: true},
	}, f.Paging)
}

func (s *saidRows) Usage(_ context.Context, q readmodel.UsageQuery) (readmodel.Answer[readmodel.UsageReport], error) {
	q.Visible = nil
	s.asked = q
	row := readmodel.UsageRow{Key: "k", Sessions: 1, Runs: 1, Used: saidUsed, CostUSD: 0.5, Unpriced: []string{"odd"}}
	total := row
	total.Key = ""
	return readmodel.Answer[readmodel.UsageReport]{
		Value: readmodel.UsageReport{By: q.By, Rows: []readmodel.UsageRow{row}, Total: total}, Fresh: s.fresh,
	}, s.err
}

func (s *saidRows) Search(_ context.Context, q readmodel.SearchQuery) (readmodel.Answer[readmodel.Page[readmodel.Hit]], error) {
	q.Visible = nil
	return said(s, q, readmodel.Hit{
		SessionID: "s", RootSessionID: "s", AgentType: "writer", UserID: "u", Kind: readmodel.HitToolCall, Role: projector.RoleAssistant,
		ToolName: "look", ToolCallID: "c", Sequence: 5, Timestamp: 1, Snippet: "fog",
	}, q.Paging)
}

func (s *saidRows) Parked(_ context.Context, f readmodel.ParkedFilter) (readmodel.Answer[readmodel.Page[readmodel.Parked]], error) {
	f.Visible = nil
	return said(s, f, readmodel.Parked{SessionID: "s", Sequence: 3, Type: "odd", Reason: "it can't be read", Stuck: true}, f.Paging)
}

func (s *saidRows) Fresh(context.Context) readmodel.Fresh {
	fresh := s.fresh
	fresh.Parked = 2
	return fresh
}

// TestListingsAsk: parameters arrive as what they mean.
func TestListingsAsk(t *testing.T) {
	rows := &saidRows{}
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.ReadModels = rows })
	january := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	first := readmodel.Paging{Limit: 50}
	for target, want := range map[string]any{
		"/sessions": readmodel.SessionFilter{Paging: first},
		"/sessions?userId=u&agentType=a&status=paused&streamStatus=ended&tag=t&metadata=k%3Dv%3Dw&metadata=l=&from=2026-01-01&to=2026-01-02&parentSessionId=p&forkedFrom=f&sort=updated&offset=3&limit=4": readmodel.SessionFilter{
			UserID: "u", AgentType: "a", Status: "paused", StreamStatus: "ended", Tag: "t", Metadata: map[string]string{"k": "v=w", "l": ""},
			From: january, To: january + 24*time.Hour.Milliseconds(), ParentSessionID: "p", ForkedFrom: "f", Sort: readmodel.ByUpdated, Paging: readmodel.Paging{Offset: 3, Limit: 4},
		},
		"/runs": readmodel.RunFilter{Paging: first},
		"/runs?sessionId=s&userId=u&agentType=a&status=suspended_client_tool&from=2026-01-01&to=2026-01-01T00:00:01.5%2B00:00": readmodel.RunFilter{
			SessionID: "s", UserID: "u", AgentType: "a", Status: fact.RunClientTool, From: january, To: january + 1500, Paging: first,
		},
		"/usage": readmodel.UsageQuery{By: readmodel.ByAgent},
		fmt.Sprintf("/usage?by=day&from=%d&to=%d&sessionId=s&userId=u&agentType=a", january, january): readmodel.UsageQuery{
			By: readmodel.ByDay, From: january, To: january, SessionID: "s", UserID: "u", AgentType: "a",
		},
		"/search?q=%22a+b%22+OR&sessionId=s&userId=u&agentType=a&limit=1": readmodel.SearchQuery{
			Text: `"a b" OR`, SessionID: "s", UserID: "u", AgentType: "a", Paging: readmodel.Paging{Limit: 1},
		},
		"/parked?sessionId=s":              readmodel.ParkedFilter{SessionID: "s", Paging: first},
		"/parked?sessionId=~memory/user/u": readmodel.ParkedFilter{SessionID: "~memory/user/u", Paging: first},
	} {
		require.Equal(t, 200, a.get(target).status, target)
		require.Equal(t, want, rows.asked, target)
	}
	for _, bad := range []string{
		"/runs?status=active", "/runs?from=", "/runs?from=yesterday", "/runs?to=-1", "/runs?from=0", "/runs?from=2&to=1", "/runs?sessionId=%00",
		"/runs?limit=201", "/usage?by=", "/usage?by=Agent", "/usage?to=2026-13-01", "/usage?userId=", "/search", "/search?q=", "/search?q=x&limit=0",
		"/sessions?metadata=", "/sessions?metadata=k", "/sessions?metadata==v", "/sessions?metadata=k=v&metadata=k=w", "/sessions?from=2&to=1",
		"/sessions?user=u", "/search?q=x&offset=-1", "/search?q=x&q=y", "/parked?sessionId=", "/parked?offset=x",
	} {
		rows.asked = nil
		a.get(bad).failed(t, 400, api.CodeInvalidRequest)
		require.Nil(t, rows.asked, bad)
	}
}

// TestListingsTellHowFreshTheyAre: and a lag is no reason not to be
// ready.
func TestListingsTellHowFreshTheyAre(t *testing.T) {
	rows := &saidRows{fresh: behind}
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) { o.ReadModels = rows })
	for _, target := range []string{"/sessions", "/runs", "/usage", "/search?q=x", "/parked"} {
		var got readmodel.Fresh
		a.get(target).decode(t, &got)
		require.Equal(t, toldBehind, got, target)
	}
	var ready api.Readiness
	got := a.get("/readyz")
	require.Equal(t, 200, got.status)
	got.decode(t, &ready)
	told := toldBehind
	told.Parked = 2
	require.Equal(t, &told, ready.ReadModels)
	require.NotContains(t, got.body, "secret")

	for err, want := range map[error]struct {
		status int
		code   api.Code
	}{
		readmodel.ErrUnavailable: {503, api.CodeUnavailable},
		&readmodel.QueryError{Field: "q", Reason: "has too many words"}: {400, api.CodeInvalidRequest},
		errors.New("secret"): {500, api.CodeInternalError},
	} {
		rows.err = err
		for _, target := range []string{"/sessions", "/runs", "/usage", "/search?q=x", "/parked"} {
			got := a.get(target)
			got.failed(t, want.status, want.code)
			require.NotContains(t, got.body, "secret")
		}
	}
}

// TestListingsWithoutReadModels: what folds can't tell in time is not offered.
func TestListingsWithoutReadModels(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	require.Contains(t, a.get("/sessions").body, `"current":true`)
	require.NotContains(t, a.get("/readyz").body, "readModels")
	for _, target := range []string{"/runs", "/usage", "/search?q=x", "/parked", "/sessions?sort=updated"} {
		a.get(target).failed(t, 501, api.CodeNotImplemented)
	}
}

// TestListingsScope: rows that the caller may not see are neither shown nor counted, by
// any route and with any filter; a caller whose rights can't be determined gets nothing.
func TestListingsScope(t *testing.T) {
	var undecided bool
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		tokens := auth.BearerTokens([]auth.Token{
			{Token: "alice", Operations: []string{"sessions", "search"}, Sessions: []string{"alice*"}},
			{Token: "lists", Operations: []string{"sessions"}, Sessions: []string{"*"}},
			{Token: "none", Operations: []string{"*"}, Sessions: []string{"nobody"}},
		})
		o.Auth = func(r *http.Request, op auth.Operation, session string) error {
			if undecided && session == "bob" {
				return errors.New("no decision")
			}
			return tokens(r, op, session)
		}
		o.ReadModels = foldedRows{o.Log}
	})
	for _, id := range []string{"alice", "alice-2", "bob"} {
		a.append(id, created(id), requested(id, "r"), text(id, classified(id)), text(id+"-sub", "x"))
	}
	count := func(token, target string) int {
		t.Helper()
		got := a.get(target, bearer(token)...)
		require.Equal(t, 200, got.status, got.body)
		var page struct {
			Total any
			Items []struct{ SessionID string }
			Rows  []struct{ Key string }
		}
		got.decode(t, &page)
		if token != "lists" {
			require.NotContains(t, got.body, "bob")
		}
		if sum, ok := page.Total.(map[string]any); ok {
			return int(sum["sessions"].(float64))
		}
		return int(page.Total.(float64))
	}
	for target, want := range map[string][3]int{
		"/sessions": {2, 3, 0}, "/sessions?parentSessionId=bob": {0, 1, 0}, "/sessions?parentSessionId=alice": {1, 1, 0},
		"/sessions?status=active": {2, 3, 0}, "/sessions?offset=5": {2, 3, 0},
		"/runs": {2, 3, 0}, "/usage": {4, 6, 0}, "/parked": {4, 6, 0},
	} {
		for i, token := range []string{"alice", "lists", "none"} {
			require.Equal(t, want[i], count(token, target), "%s %s", token, target)
		}
	}
	count("alice", "/search?q=x")
	a.get("/search?q=x", bearer("lists")...).failed(t, 403, api.CodeUnauthorized)

	undecided = true
	for _, target := range []string{"/sessions", "/runs", "/usage", "/search?q=x", "/parked"} {
		a.get(target, bearer("alice")...).failed(t, 500, api.CodeInternalError)
	}
}

// slowRows hold each search until it may continue.
type slowRows struct {
	foldedRows
	begun chan string   // the words of searches that have begun
	goOn  chan struct{} // closed: they may end
}

func (s slowRows) Search(ctx context.Context, q readmodel.SearchQuery) (found readmodel.Answer[readmodel.Page[readmodel.Hit]], err error) {
	s.begun <- q.Text
	if q.Text != "good" {
		select {
		case <-s.goOn:
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
	return found, nil
}

// TestATenantTakesOneSearch: however many searches a tenant sends, another's is
// answered meanwhile.
func TestATenantTakesOneSearch(t *testing.T) {
	rows := slowRows{begun: make(chan string, 10), goOn: make(chan struct{})}
	a := newAPIOn(t, memory.New(), nil, func(o *httpapi.Options) {
		o.ReadModels = rows
		var tokens []auth.Token
		for _, name := range []string{"evil", "good"} {
			tokens = append(tokens, auth.Token{Token: name, Name: name, Tenant: name, Operations: []string{"*"}, Sessions: []string{"*"}})
		}
		o.Auth, o.Identify = auth.BearerTokens(tokens), auth.TokenCallers(tokens)
	})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { a.get("/search?q=evil", "Authorization", "Bearer evil") })
	}
	require.Equal(t, "evil", <-rows.begun)
	require.Equal(t, 200, a.get("/search?q=good", "Authorization", "Bearer good").status)
	require.Equal(t, "good", <-rows.begun)
	require.Empty(t, rows.begun, "the tenant's other searches wait for its first one")
	close(rows.goOn)
	all.Wait()
	require.Len(t, rows.begun, 2, "and come after it")
}
