package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/projector/sqlite"
	"github.com/helixd/helixd/snapshot"
)

// newTenants serves the tenants red and blue, of which red has limits, with read
// models that count.
func newTenants(t *testing.T, red quota.Limits, agents ...agentloop.Agent) *testAPI {
	t.Helper()
	return newAPIOn(t, memory.New(), agents, withUsers, withLimits(t, red, agents...))
}

func withLimits(t *testing.T, red quota.Limits, agents ...agentloop.Agent) func(*httpapi.Options) {
	return func(o *httpapi.Options) {
		models := sqlite.Open(o.Log.(eventlog.ChangeFeed), snapshot.New(o.Log, nil), sqlite.Options{
			Path: filepath.Join(t.TempDir(), "rows.db"), Patience: within,
		})
		t.Cleanup(models.Close)
		q := quota.New(quota.Tenants{Named: map[string]quota.Limits{"red": red}}, models, new(quota.Memory))
		loop, err := engine.New(o.Log, agents, &engine.Options{Quota: q})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		o.Loop, o.Quota, o.ReadModels = loop, q, models
		require.Eventually(t, func() bool { return models.Fresh(t.Context()).Current }, within, time.Millisecond)
	}
}

func (a *testAPI) produce(id, text, token string) answer {
	a.t.Helper()
	return a.post("/sessions/"+id+"/chunks", fmt.Sprintf(`[{"type":"text_delta","agentId":%q,"agentType":"x","step":0,"timestamp":1,"delta":%q}]`, id, text), bearer(token)...)
}

func (a *testAPI) exists(id string) bool {
	a.t.Helper()
	_, err := a.log.Head(a.ctx(), id)
	return err == nil
}

// A tenant makes no more sessions than it may, however fast; a session that is
// erased makes room.
func TestSessionsOfATenant(t *testing.T) {
	t.Parallel()
	a := newTenants(t, quota.Limits{Sessions: 3})
	var all sync.WaitGroup
	statuses := make([]int, 20)
	for i := range statuses {
		all.Go(func() { statuses[i] = a.produce(fmt.Sprint("s", i), "x", "ann").status })
	}
	all.Wait()
	count := map[int]int{}
	made := ""
	for i, status := range statuses {
		count[status]++
		id := fmt.Sprint("s", i)
		require.Equal(t, status == 200, a.exists(id), id)
		if status == 200 {
			made = id
		}
	}
	require.Equal(t, 20, count[200]+count[429], "%v", count)
	require.LessOrEqual(t, count[200], 3)
	for n := count[200]; n < 3; n++ { // one that is being made may count twice for a moment
		made = fmt.Sprint("late", n)
		require.Eventually(t, func() bool { return a.produce(made, "x", "ann").status == 200 }, within, 10*time.Millisecond)
	}
	a.produce("more", "x", "ann").failed(t, 429, api.CodeQuotaExceeded)
	a.produce(made, "y", "ann").appended(t) // no new one
	a.post("/sessions/"+made+"/fork", `{"sessionId":"fork"}`, bearer("ann")...).failed(t, 429, api.CodeQuotaExceeded)
	require.False(t, a.exists("fork"))
	for i := range 5 {
		a.produce(fmt.Sprint("blue", i), "x", "bob").appended(t)
	}
	require.Equal(t, 200, a.request("DELETE", "/sessions/"+made, "", bearer("ann")...).status)
	require.Eventually(t, func() bool { return a.produce("after", "x", "ann").status == 200 }, within, 10*time.Millisecond)
}

// A tenant stores no more bytes than it may, what a fork copies included; streams
// can still be ended.
func TestBytesOfATenant(t *testing.T) {
	a := newTenants(t, quota.Limits{Bytes: 10_000})
	large := strings.Repeat("x", 3000)
	patch := `[{"type":"state_patch","agentId":"s","agentType":"x","step":0,"timestamp":1,"patches":[{"op":"add","path":"/large","value":"` + large + `"}]}]`
	a.post("/sessions/s/chunks", patch, bearer("ann")...).appended(t)
	require.Equal(t, 200, a.post("/sessions/s/fork", `{"sessionId":"fork-1"}`, bearer("ann")...).status)
	got := a.post("/sessions/s/fork", `{"sessionId":"fork-2"}`, bearer("ann")...)
	for n := 3; got.status == 200; n++ {
		require.Less(t, n, 6)
		got = a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":"fork-%d"}`, n), bearer("ann")...)
	}
	require.JSONEq(t, `{"quota":"bytes","limit":10000}`, detailOf(t, got, api.CodeQuotaExceeded))
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	a.produce("s", large+large+large, "ann").failed(t, 429, api.CodeQuotaExceeded)
	after, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	require.Equal(t, head, after)
	a.post("/sessions/s/end", `{}`, bearer("ann")...).appended(t)
	a.produce("blue", large+large+large+large, "bob").appended(t)
}

// A rollback stores the state again, and an end its output: neither takes a tenant
// over its bytes. An end without output is never refused.
func TestBytesOfRollbacksAndEnds(t *testing.T) {
	a := newTenants(t, quota.Limits{Bytes: 10_000}, writer())
	large := strings.Repeat("x", 3000)
	patch := `[{"type":"state_patch","agentId":"s","agentType":"x","step":0,"timestamp":1,"patches":[{"op":"add","path":"/large","value":"` + large + `"}]}]`
	seq := a.post("/sessions/s/chunks", patch, bearer("ann")...).appended(t).LastSequence
	a.produce("s", "more", "ann").appended(t)
	back := func() answer {
		return a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, seq), bearer("ann")...)
	}
	got := back()
	require.Equal(t, 200, got.status, got.body)
	for n := 2; got.status == 200; n++ {
		require.Less(t, n, 5)
		got = back()
	}
	require.JSONEq(t, `{"quota":"bytes","limit":10000}`, detailOf(t, got, api.CodeQuotaExceeded))
	head, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	back().failed(t, 429, api.CodeQuotaExceeded)
	a.post("/sessions/s/end", `{"finalOutput":"`+large+`"}`, bearer("ann")...).failed(t, 429, api.CodeQuotaExceeded)
	after, err := a.log.Head(a.ctx(), "s")
	require.NoError(t, err)
	require.Equal(t, head, after)
	a.post("/sessions/s/end", `{}`, bearer("ann")...).appended(t)
}

// patientModel answers when it is let.
type patientModel struct{ let chan struct{} }

func (m patientModel) Generate(ctx context.Context, _ model.Request, emit func(model.Event) error) (model.Answer, error) {
	select {
	case <-m.let:
	case <-ctx.Done():
		return model.Answer{}, context.Cause(ctx)
	}
	return model.Answer{StopReason: fact.StopEndTurn}, emit(model.TextDelta{Text: "done"})
}

// A tenant has no more runs at a time than it may; one that ends makes room.
func TestRunsOfATenant(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	a := newTenants(t, quota.Limits{Runs: 2}, agentloop.Agent{Name: "writer", Model: patientModel{let}})
	start := func(id, token string) answer {
		return a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"writer","message":"hi"}`, id), bearer(token)...)
	}
	require.Equal(t, 200, start("one", "ann").status)
	require.Equal(t, 200, start("two", "ann").status)
	require.Equal(t, 200, start("two", "ann").status, "it is found, and no other run")
	got := start("three", "ann")
	require.JSONEq(t, `{"quota":"runs","limit":2}`, detailOf(t, got, api.CodeQuotaExceeded))
	require.False(t, a.exists("three"))
	require.Equal(t, 200, start("blue", "bob").status)
	require.Equal(t, 200, a.post("/abort", `{"sessionId":"one"}`, bearer("ann")...).status, "a run can be stopped")
	require.Eventually(t, func() bool { return start("four", "ann").status == 200 }, within, 10*time.Millisecond)
	again := a.post("/resume", `{"sessionId":"one","mode":"retry"}`, bearer("ann")...)
	require.JSONEq(t, `{"quota":"runs","limit":2}`, detailOf(t, again, api.CodeQuotaExceeded))
	close(let)
	require.Eventually(t, func() bool { return start("five", "ann").status == 200 }, within, 10*time.Millisecond)
	message := func() answer {
		return a.post("/sessions/five/messages", `{"message":"more"}`, bearer("ann")...)
	}
	require.Eventually(t, func() bool { return message().status == http.StatusOK }, within, 10*time.Millisecond)
}

// An answer to a call is stored even if there is no room for the run that continues with
// it; sent again, it has the run continue.
func TestAnswersOverTheLimitOfRuns(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	a := newTenants(t, quota.Limits{Runs: 1}, append(waitingAgents(), agentloop.Agent{Name: "writer", Model: patientModel{let}})...)
	start := func(id, agent string) int {
		return a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":%q,"message":"hi"}`, id, agent), bearer("ann")...).status
	}
	require.Equal(t, 200, start("s", "asker"))
	a.stream("/sse?sessionId=s", bearer("ann")...).rest()
	require.Eventually(t, func() bool { return start("long", "writer") == 200 }, within, 10*time.Millisecond)
	approve := func() answer {
		return a.post("/chat/s/submit-tool-result", `{"toolCallId":"rm","kind":"approval-response","approved":true}`, bearer("ann")...)
	}
	require.Contains(t, approve().failed(t, 429, api.CodeQuotaExceeded).Error, "only answers to tool calls were stored")
	require.Len(t, a.actors("s", "result_submitted"), 1)
	require.Len(t, a.actors("s", "run_requested"), 1)
	approve().failed(t, 429, api.CodeQuotaExceeded)
	require.Len(t, a.actors("s", "result_submitted"), 1, "it is stored once")
	close(let)
	require.Eventually(t, func() bool { return approve().status == 200 }, within, 10*time.Millisecond)
	_, texts, _ := a.stream("/sse?sessionId=s", bearer("ann")...).rest()
	require.Contains(t, texts, "removed")
}

// A caller whose tenant has limits adds nothing to a session without a tenant, which
// counts for nobody, even if it may act for anybody: it reads the session, stops it,
// and forks it for its tenant.
func TestSessionsOfNoTenant(t *testing.T) {
	t.Parallel()
	a := newTenants(t, quota.Limits{Bytes: 1 << 20}, writer())
	start := `{"sessionId":"s","agentType":"writer","message":"hi","userId":"ann"}`
	require.Equal(t, 200, a.post("/start", start, bearer("plain")...).status)
	a.get("/sse?sessionId=s", bearer("plain")...)
	a.append("p", factOf("p", &fact.SessionCreated{AgentType: "writer", UserID: "ann", Base: factBase("p")}))
	before := a.contents()
	for target, body := range map[string]string{
		"/sessions/s/messages": `{"message":"more"}`,
		"/sessions/s/rollback": `{"sequence":2}`,
		"/sessions/p/chunks":   `[{"type":"text_delta","agentId":"p","agentType":"writer","step":0,"timestamp":1,"delta":"x"}]`,
		"/chat":                `{"id":"s","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"more"}]}]}`,
		"/resume":              `{"sessionId":"s","mode":"retry"}`,
	} {
		a.post(target, body, bearer("lead")...).failed(t, 403, api.CodeUnauthorized)
	}
	require.Equal(t, before, a.contents())
	require.Equal(t, 200, a.get("/sessions/s", bearer("lead")...).status)
	require.Equal(t, 200, a.post("/sessions/s/fork", `{"sessionId":"fork"}`, bearer("lead")...).status)
	require.Equal(t, 200, a.post("/sessions/fork/messages", `{"message":"more"}`, bearer("lead")...).status)
	require.Equal(t, 200, a.post("/sessions/s/messages", `{"message":"more"}`, bearer("plain")...).status)
}

// A session has its tenant in its first record, and hands it on to its forks.
func TestTenantOfASession(t *testing.T) {
	a := newTenants(t, quota.Limits{}, writer())
	require.Equal(t, 200, a.post("/start", `{"sessionId":"started","agentType":"writer","message":"hi"}`, bearer("ann")...).status)
	a.produce("produced", "x", "bob").appended(t)
	a.produce("free", "x", "plain").appended(t)
	require.Equal(t, 200, a.post("/sessions/produced/fork", `{"sessionId":"fork"}`, bearer("desk")...).status)
	require.Equal(t, 200, a.post("/sessions/fork/fork", `{"sessionId":"fork-of-fork"}`, bearer("bob")...).status)
	for id, want := range map[string]string{"started": "red", "produced": "blue", "free": "", "fork": "blue", "fork-of-fork": "blue"} {
		for r, err := range a.log.Read(a.ctx(), id, 0, 1) {
			require.NoError(t, err)
			f, err := r.Fact()
			if want == "" {
				require.Error(t, err)
				break
			}
			require.NoError(t, err)
			tree, err := snapshot.New(a.log, nil).At(a.ctx(), id, r.Sequence)
			require.NoError(t, err)
			require.Equal(t, want, tree.Tenant, "%s %T", id, f)
			require.Equal(t, int64(len(r.Payload)), tree.Bytes)
		}
	}
	a.post("/sessions/i/import", "{}", bearer("ann")...).failed(t, 403, api.CodeUnauthorized)
}

// A tenant that has spent its day begins no run, whichever route asks for it. The
// session says what has stopped its run.
func TestDayOfATenant(t *testing.T) {
	use := fact.TokenUsage{Prompt: 60, Completion: 40}
	look := agentloop.NewTool("look", "", func(context.Context, *agentloop.Call, struct{}) (string, error) { return "rain", nil })
	a := newTenants(t, quota.Limits{TokensPerDay: 100}, agentloop.Agent{
		Name: "writer", Tools: []agentloop.Tool{look},
		Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "look"}}, Usage: use}, {Text: "It rains.", Usage: use}}, nil),
	})
	start := func(id, token string) answer {
		return a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"writer","message":"hi"}`, id), bearer(token)...)
	}
	require.Equal(t, 200, start("s", "ann").status)
	var status struct{ Status, Error string }
	require.Eventually(t, func() bool {
		a.get("/status?sessionId=s", bearer("ann")...).decode(t, &status)
		return status.Status == "failed"
	}, within, time.Millisecond)
	require.Contains(t, status.Error, "tokensPerDay is 100")
	tree, err := snapshot.New(a.log, nil).Head(a.ctx(), "s")
	require.NoError(t, err)
	require.Equal(t, agentloop.CodeQuotaExceeded, tree.Error.Code)
	for path, body := range map[string]string{
		"/start":               `{"sessionId":"new","agentType":"writer","message":"hi"}`,
		"/sessions/s/messages": `{"message":"more"}`,
		"/resume":              `{"sessionId":"s","mode":"retry"}`,
		"/chat":                `{"id":"chat","agentType":"writer","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":"hi"}]}]}`,
	} {
		got := a.post(path, body, bearer("ann")...)
		require.JSONEq(t, `{"quota":"tokensPerDay","limit":100}`, detailOf(t, got, api.CodeQuotaExceeded), path)
		seconds, err := strconv.Atoi(got.header.Get("Retry-After"))
		require.NoError(t, err, path)
		tomorrow := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		require.InDelta(t, time.Until(tomorrow).Seconds(), seconds, 120, path)
	}
	require.False(t, a.exists("new"))
	require.False(t, a.exists("chat"))
	var usage api.UsagePage
	a.get("/sessions/s/usage", bearer("lead")...).decode(t, &usage)
	require.Equal(t, &api.Budget{TokensPerDay: 100, Tokens: 100}, usage.Budget)
	usage = api.UsagePage{}
	a.get("/sessions/s/usage?offset=1", bearer("lead")...).decode(t, &usage)
	require.Nil(t, usage.Budget, "the first page has it")
	a.get("/sessions/s/usage", bearer("ann")...).decode(t, &usage)
	require.Nil(t, usage.Budget, "it is of all users of the tenant")
	a.produce("s2", "x", "ann").appended(t)
	require.Equal(t, 200, start("blue", "bob").status)
	a.get("/sessions/blue/usage", bearer("plain")...).decode(t, &usage)
	require.Nil(t, usage.Budget, "the tenant has no budget")
}

// noDays is a store of days that can't be read.
type noDays struct{ quota.Memory }

func (*noDays) Load(context.Context, string) ([]byte, uint64, error) {
	return nil, 0, errors.New("no leader")
}

// The usage of a session needs no store of days, which may be out of reach.
func TestUsageWithoutTheTenantsDay(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, memory.New(), nil, withUsers, func(o *httpapi.Options) {
		o.Quota = quota.New(dayOf(100), nil, new(noDays))
	})
	a.finishedOf("ann", "s")
	var usage api.UsagePage
	a.get("/sessions/s/usage", bearer("plain")...).decode(t, &usage)
	require.Nil(t, usage.Budget)
	require.Contains(t, a.logs.String(), "no leader")
}

// newDay serves a tenant red with a budget of tokens a day, whose limits can be
// changed as a reload does.
func newDay(t *testing.T, tokens int64, agents ...agentloop.Agent) (*testAPI, *quota.Quota) {
	t.Helper()
	var q *quota.Quota
	a := newAPIOn(t, memory.New(), agents, withUsers, func(o *httpapi.Options) {
		q = quota.New(dayOf(tokens), nil, new(quota.Memory))
		loop, err := engine.New(o.Log, agents, &engine.Options{Quota: q})
		require.NoError(t, err)
		t.Cleanup(loop.Stop)
		o.Loop, o.Quota = loop, q
	})
	return a, q
}

func dayOf(tokens int64) quota.Tenants {
	return quota.Tenants{Named: map[string]quota.Limits{"red": {TokensPerDay: tokens}}}
}

func (a *testAPI) spent(q *quota.Quota) (spent, reserved int64) {
	a.t.Helper()
	s, r, err := q.Spent(a.ctx(), "red")
	require.NoError(a.t, err)
	return s.Tokens, r.Tokens
}

// What a rollback takes back was spent all the same: going back brings nothing of a
// day's budget, and the run that continues from there reserves and pays for its calls.
func TestARollbackGivesNoBudgetBack(t *testing.T) {
	use := fact.TokenUsage{Prompt: 60, Completion: 40}
	a, q := newDay(t, 10_000, agentloop.Agent{Name: "writer", Model: scripted.New([]scripted.Turn{{Text: "one", Usage: use}, {Text: "two", Usage: use}}, nil)})
	ends := func(n int) {
		t.Helper()
		require.Eventually(t, func() bool {
			ended := 0
			for r, err := range a.log.Read(a.ctx(), "s", 0, 0) {
				if err == nil && r.Type == "run_ended" {
					ended++
				}
			}
			return ended >= n
		}, within, time.Millisecond)
	}
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"writer","message":"hi"}`, bearer("ann")...).status)
	ends(1)
	spent, reserved := a.spent(q)
	require.Equal(t, int64(100), spent)
	require.Zero(t, reserved)

	back := a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, a.firstSequence("s")), bearer("ann")...)
	require.Equal(t, 200, back.status, back.body)
	spent, reserved = a.spent(q)
	require.Equal(t, int64(100), spent, "it was spent")
	require.Zero(t, reserved)
	again := a.post("/sessions/s/messages", `{"message":"again"}`, bearer("ann")...)
	require.Equal(t, 200, again.status, again.body)
	ends(2)
	spent, reserved = a.spent(q)
	require.Equal(t, int64(200), spent)
	require.Zero(t, reserved)

	q.Set(dayOf(200))
	require.Equal(t, 200, a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, a.firstSequence("s")), bearer("ann")...).status)
	got := a.post("/sessions/s/messages", `{"message":"more"}`, bearer("ann")...)
	require.JSONEq(t, `{"quota":"tokensPerDay","limit":200}`, detailOf(t, got, api.CodeQuotaExceeded))
}

// An abort in the middle of a model call settles it: what was sent and streamed
// counts, and no reservation is left that would keep the tenant's other calls waiting.
func TestAnAbortInMidCallSettlesIt(t *testing.T) {
	let := make(chan struct{})
	a, q := newDay(t, 10_000, agentloop.Agent{Name: "writer", Model: patientModel{let}})
	require.Equal(t, 200, a.post("/start", `{"sessionId":"s","agentType":"writer","message":"hi"}`, bearer("ann")...).status)
	require.Eventually(t, func() bool { _, reserved := a.spent(q); return reserved > 0 }, within, time.Millisecond)
	require.Equal(t, 200, a.post("/abort", `{"sessionId":"s"}`, bearer("ann")...).status)
	require.Eventually(t, func() bool { _, reserved := a.spent(q); return reserved == 0 }, within, time.Millisecond)
	spent, _ := a.spent(q)
	require.Less(t, spent, int64(1000), "an answer that never came is not paid for")
}

// A reload that adds a budget holds for the next model call of a run that is under way,
// and its call that has begun without a reservation comes to its end. One that takes
// the budget away lets the tenant continue.
func TestAReloadAddsAndRemovesABudget(t *testing.T) {
	let := make(chan struct{})
	use := fact.TokenUsage{Prompt: 60, Completion: 40}
	look := agentloop.NewTool("look", "", func(ctx context.Context, _ *agentloop.Call, _ struct{}) (string, error) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return "rain", nil
	})
	a, q := newDay(t, 0, agentloop.Agent{
		Name: "writer", Tools: []agentloop.Tool{look},
		Model: scripted.New([]scripted.Turn{{ToolCalls: []scripted.Call{{Name: "look"}}, Usage: use}, {Text: "It rains.", Usage: use}}, nil),
	})
	start := func(id string) answer {
		return a.post("/start", fmt.Sprintf(`{"sessionId":%q,"agentType":"writer","message":"hi"}`, id), bearer("ann")...)
	}
	require.Equal(t, 200, start("s").status)
	require.Eventually(t, func() bool { return strings.Contains(a.contents()["s"], "tool_start") }, within, time.Millisecond)
	spent, reserved := a.spent(q)
	require.Zero(t, spent+reserved, "no budget, no account")

	q.Set(dayOf(1))
	close(let)
	require.Eventually(t, func() bool { return strings.Contains(a.contents()["s"], "run_ended") }, within, time.Millisecond)
	tree, err := snapshot.New(a.log, nil).Head(a.ctx(), "s")
	require.NoError(t, err)
	spent, reserved = a.spent(q)
	require.Zero(t, reserved)
	require.Equal(t, int64(100), spent, "the first call of a day may exceed it")
	require.Nil(t, tree.Error)
	got := start("more")
	require.JSONEq(t, `{"quota":"tokensPerDay","limit":1}`, detailOf(t, got, api.CodeQuotaExceeded))

	q.Set(quota.Tenants{})
	require.Equal(t, 200, start("more").status)
}
