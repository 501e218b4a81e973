package integration_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/modeltest"
	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/daily"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
)

// budgets are two daemons on one server, whose callers are of the tenant red.
type budgets struct {
	t     *testing.T
	nodes []*daemon
	log   eventlog.Log
	quota *quota.Quota // to look at what was spent
}

// newBudgets starts daemons whose agent's model answers with what choose returns. An
// answer may have 40 tokens.
func newBudgets(t *testing.T, tokensPerDay int64, choose func(body []byte) modeltest.Stream) *budgets {
	t.Helper()
	provider := modeltest.ServeFunc(t, choose)
	srv := newServer(t, "one", func(*server.Options) {})
	file := configFile(t, fmt.Sprintf(`
nats: {url: %q, partitions: 1}
auth: {tokens: [{token: t0ken, name: ann, operations: ["*"], sessions: ["*"], tenant: red}]}
tenants: {red: {tokensPerDay: %d}}
modelRetryDelay: 1ms
agents:
  walker:
    model: {provider: openai, name: some-model, apiKey: "none", baseURL: %q, maxOutputTokens: 40, maxRetries: 1000}
`, srv.ClientURL(), tokensPerDay, provider.URL))
	b := &budgets{t: t}
	for range 2 {
		d := newDaemon(t, "serve", "--config", file, "--data-dir", t.TempDir())
		d.start()
		b.nodes = append(b.nodes, d)
	}
	nc := connect(t, srv.ClientURL())
	b.log = jetstreamtest.Open(t, nc, &jetstream.Options{Existing: true})
	b.quota = quota.New(quota.Tenants{Named: map[string]quota.Limits{"red": {TokensPerDay: tokensPerDay}}}, nil, daily.New(nc, 1, nil))
	return b
}

func (b *budgets) start(node int, session string) int {
	b.t.Helper()
	body := fmt.Sprintf(`{"sessionId":%q,"agentType":"walker","message":"go"}`, session)
	resp, err := ask(b.t.Context(), "POST", b.nodes[node].url+"/start", body, "Authorization", "Bearer t0ken", "Content-Type", "application/json")
	require.NoError(b.t, err)
	resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests {
		require.NotEmpty(b.t, resp.Header.Get("Retry-After"))
	}
	return resp.StatusCode
}

func (b *budgets) ended(session string) *projector.Tree {
	b.t.Helper()
	return (&rig{log: b.log}).ended(b.t, session)
}

func (b *budgets) spent() (spent, reserved int64) {
	b.t.Helper()
	s, r, err := b.quota.Spent(b.t.Context(), "red")
	require.NoError(b.t, err)
	return s.Tokens, r.Tokens
}

// A node is killed (SIGKILL) while its model speaks. Another one continues the run.
// What the dead call had reserved counts as spent, once; the recorded answer counts as
// the provider says.
func TestKillBetweenReservationAndSettlement(t *testing.T) {
	testkit.Slow(t)
	t.Parallel() // most of it is waiting
	var calls atomic.Int64
	answer := turn("", "Here I am. ")
	b := newBudgets(t, 1_000_000, func([]byte) modeltest.Stream {
		if calls.Add(1) == 1 {
			hangs := answer
			hangs.Events, hangs.Done, hangs.Hang = answer.Events[:2], false, true
			return hangs
		}
		return answer
	})
	require.Equal(t, http.StatusOK, b.start(0, "s"))
	require.Eventually(t, func() bool {
		tree, err := snapshot.New(b.log, nil).Head(t.Context(), "s")
		return err == nil && tree.Turn != nil && tree.Turn.Step != nil && len(tree.Turn.Step.Partial) > 0
	}, time.Minute, time.Millisecond)
	spent, reserved := b.spent()
	require.Zero(t, spent)
	require.Greater(t, reserved, int64(40))
	b.nodes[0].kill()
	require.Equal(t, projector.SessionCompleted, b.ended("s").Status)
	require.Equal(t, int64(2), calls.Load())
	spent, left := b.spent()
	require.Equal(t, reserved+30, spent)
	require.Zero(t, left)
}

// Runs of one tenant at two nodes spend one call more than its budget at most, then
// both nodes refuse further ones. A run that was stopped says why.
func TestABudgetOfTwoNodes(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	b := newBudgets(t, 400, func([]byte) modeltest.Stream { return turn("", "Here I am. ") })
	var sessions []string
	refused := 0
	for i := 0; i < 40 && refused < 2; i++ { // until each node has refused one
		session := fmt.Sprint("s", i)
		switch status := b.start(i%2, session); status {
		case http.StatusOK:
			sessions = append(sessions, session)
			refused = 0
		case http.StatusTooManyRequests:
			refused++
			continue
		default:
			require.Fail(t, "refused", "%d", status)
		}
	}
	done := int64(0)
	for _, session := range sessions {
		tree := b.ended(session)
		if tree.Status == projector.SessionCompleted {
			done++
			continue
		}
		require.Equal(t, agentloop.CodeQuotaExceeded, tree.Error.Code)
	}
	spent, reserved := b.spent()
	require.Zero(t, reserved)
	require.Equal(t, 30*done, spent)
	require.GreaterOrEqual(t, spent, int64(400))
	require.LessOrEqual(t, spent, int64(430))
	for node := range b.nodes {
		require.Equal(t, http.StatusTooManyRequests, b.start(node, "more"))
	}
}
