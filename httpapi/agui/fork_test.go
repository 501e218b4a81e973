package agui_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/engine/timetravel"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi"
)

// A fork has no run of its own: a page begins with its conversation, and goes on with what waits
// in it.
func TestForks(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	g.run(c, input("t", "r1", object{"messages": []any{user("u", "call pay")}, "state": object{"k": 1}}))
	head, err := g.log.Head(t.Context(), "t")
	require.NoError(t, err)
	_, err = g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{
		FromSessionID: "t", At: timetravel.Target{Sequence: head}, NewSessionID: "f",
	})
	require.NoError(t, err)
	page := newClient(t)
	page.takeAll(g.rejoin("f", ""))
	same(t, c, page)
	require.Equal(t, interruptID(c), interruptID(page))
	require.Contains(t, g.refused(400, input("f", "r2", object{"messages": []any{user("u2", "go on")}})), "open interrupts")

	page.again()
	all := g.run(page, input("f", "r2", object{"resume": []any{object{"interruptId": interruptID(page), "status": "resolved", "payload": true}}}))
	require.Equal(t, "paid", page.find("result-call_1")["content"])
	g.checkCuts("f", page, all)

	// A fork of a thread that waits for nothing, and one that was interrupted in the middle.
	_, err = g.loop.TimeTravel.Fork(t.Context(), timetravel.ForkRequest{
		FromSessionID: "f", At: timetravel.Target{Sequence: page.head(g, "f")}, NewSessionID: "done",
	})
	require.NoError(t, err)
	done := newClient(t)
	done.takeAll(g.rejoin("done", ""))
	same(t, page, done)
	require.Equal(t, object{"type": "success"}, done.last["outcome"])
	require.Contains(t, g.refused(400, input("done", "r", object{"messages": []any{user("u", "call pay")}})), "message of the user")
}

func interruptID(c *client) any {
	return c.last["outcome"].(object)["interrupts"].([]any)[0].(object)["id"]
}

func (c *client) head(g *rig, session string) uint64 {
	head, err := g.log.Head(g.t.Context(), session)
	require.NoError(c.t, err)
	return head
}

// A thread that goes back takes its later messages from clients when its next run begins.
func TestAThreadThatGoesBack(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	c := newClient(t)
	g.run(c, input("t", "r1", object{"messages": []any{user("u1", "hello")}}))
	c.again()
	g.run(c, input("t", "r2", object{"messages": []any{user("u2", "hello")}}))
	_, err := g.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "t", Mode: fact.ModeRetry, Turn: 1})
	require.NoError(t, err)
	c.again()
	c.takeAll(g.rejoin("t", c.saw))
	require.Nil(t, c.find("u2"))
	require.Nil(t, c.find("turn-2-step-1"))
	require.Equal(t, "Hello there.", c.find("turn-1-step-1")["content"])
	page := newClient(t)
	page.takeAll(g.rejoin("t", ""))
	same(t, c, page)
}

// The metrics of HTTP know the protocol.
func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	g := newRig(t, func(o *httpapi.Options) { o.Metrics = httpapi.NewMetrics(reg) })
	g.run(newClient(t), input("t", "r", object{"messages": []any{user("u", "hello")}}))
	g.refused(400, input("t", "", nil))
	require.Eventually(t, func() bool {
		n, err := testutil.GatherAndCount(reg, "helixd_http_requests_total")
		return err == nil && n == 2
	}, within, tick)
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "helixd_http_requests_total" {
			for _, m := range f.GetMetric() {
				require.Contains(t, m.String(), `"ag-ui"`)
				require.Contains(t, m.String(), `"/ag-ui/{agent}"`)
			}
		}
	}
}
