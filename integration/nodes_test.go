package integration_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/worklist"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/integration/testkit"
)

// outsideNodes are daemons on a deployment that is not theirs. Their agents are
// walker, who calls a tool twice and then speaks, in about a second; stroller,
// who takes ten times as long; careful, who asks before it calls the tool; and
// talker, who speaks for minutes.
func outsideNodes(t *testing.T, url string, n int, env ...string) []*daemon {
	t.Helper()
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"result":"there"}`)
	}))
	t.Cleanup(tool.Close)
	walks := func(delay string) string {
		return `
    model:
      provider: scripted
      scriptDelay: ` + delay + `
      script:
        - {text: "I take the first step.", toolCalls: [{name: walk}]}
        - {text: "I take the second step.", toolCalls: [{name: walk}]}
        - {text: "Now I have arrived."}
    tools:
      walk: {description: One step., inputSchema: {type: object}, http: {url: "` + tool.URL + `"}}
`
	}
	file := configFile(t, `
nats: {url: "`+url+`", replicas: 3, partitions: 1}
drainTimeout: 30s
agents:
  walker:`+walks("30ms")+`
  stroller:`+walks("300ms")+`
  careful:
    model: {provider: scripted, script: [{text: "I ask.", toolCalls: [{name: walk}]}, {text: "It was allowed."}]}
    tools:
      walk: {description: One step., inputSchema: {type: object}, http: {url: "`+tool.URL+`"}, requireApproval: true}
  talker:
    model: {provider: scripted, scriptDelay: 200ms, script: [{text: "`+strings.Repeat("on and ", 600)+`"}]}
`)
	nodes := make([]*daemon, n)
	for i := range nodes {
		nodes[i] = newDaemon(t, "serve", "--config", file, "--allow-unauthenticated")
		nodes[i].env = env
		nodes[i].start()
	}
	return nodes
}

// claimants are the nodes that have claimed a session, in order.
func claimants(t *testing.T, log eventlog.Log, session string) (nodes []string) {
	t.Helper()
	for r, err := range log.Read(t.Context(), session, 0, 0) {
		require.NoError(t, err)
		if r.Type != (*fact.RunClaimed)(nil).Type() {
			continue
		}
		f, err := r.Fact()
		require.NoError(t, err)
		nodes = append(nodes, f.(*fact.RunClaimed).Node)
	}
	return nodes
}

// healthyRuns is how many runs TestNoHealthyRunIsTakenOverWhenALeaderDies
// watches, unless HELIX_HEALTHY says otherwise.
const healthyRuns = 20

// The death of the server that leads the list of runs, or the log, disturbs no
// run that is healthy: nobody takes one over.
func TestNoHealthyRunIsTakenOverWhenALeaderDies(t *testing.T) {
	testkit.Long(t)
	runs := testkit.Count(t, "HELIX_HEALTHY", healthyRuns)
	for _, stream := range []string{worklist.Stream, "HELIX_LOG_0"} {
		t.Run(stream, func(t *testing.T) {
			taken := takenOver(t, stream, runs)
			if len(taken) > 0 {
				// A node that its machine lets stand still for seconds is dead to the
				// others. That is no fault, and does not happen twice.
				t.Logf("once more: these were taken over: %v", taken)
				taken = takenOver(t, stream, runs)
			}
			require.Empty(t, taken)
		})
	}
}

// takenOver has healthy runs meet the death of the server that leads a stream,
// and returns the claimants of those that were taken over.
func takenOver(t *testing.T, stream string, runs int) map[string][]string {
	t.Helper()
	c := newCluster(t)
	nodes := outsideNodes(t, c.url(), 3)
	log := jetstreamtest.Open(t, connect(t, c.url()), &jetstream.Options{Existing: true})
	for i := range runs {
		nodes[i%3].ok("/start", map[string]any{"sessionId": fmt.Sprint("s", i), "agentType": "talker", "message": "go"})
	}
	for i := range runs {
		require.Eventually(t, func() bool { return len(claimants(t, log, fmt.Sprint("s", i))) > 0 }, time.Minute, 10*time.Millisecond)
	}
	c.loseLeader(stream)
	heads := make([]uint64, runs)
	for i := range heads {
		require.Eventually(t, func() bool {
			var err error
			heads[i], err = log.Head(t.Context(), fmt.Sprint("s", i))
			return err == nil
		}, time.Minute, 10*time.Millisecond)
	}
	for i, head := range heads { // each speaks on
		require.Eventually(t, func() bool { h, err := log.Head(t.Context(), fmt.Sprint("s", i)); return err == nil && h > head }, time.Minute, 10*time.Millisecond)
	}
	taken := map[string][]string{}
	for i := range runs {
		if by := claimants(t, log, fmt.Sprint("s", i)); len(by) > 1 {
			taken[fmt.Sprint("s", i)] = by
		}
	}
	for _, n := range nodes {
		n.kill()
	}
	for _, s := range c.servers {
		s.Shutdown()
		s.WaitForShutdown()
	}
	return taken
}

// Nodes are stopped and started again, one after the other, while sessions are
// begun on all of them: every request is answered at the first try, or at
// another node where one is not there or not ready, every run comes to its end, and
// no word of one is truncated.
func TestARollingRestartLosesNothing(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	nodes := outsideNodes(t, c.url(), 3)
	log := jetstreamtest.Open(t, connect(t, c.url()), &jetstream.Options{Existing: true})
	each := max(30, testkit.Times(60)) // sessions are begun, at most, around each restart
	var (
		begun   atomic.Int64
		retried atomic.Int64
		load    sync.WaitGroup
		room    = make(chan struct{}, 3*each)
	)
	for w := range 3 {
		load.Go(func() {
			for range room {
				session := fmt.Sprint("s", begun.Add(1))
				retried.Add(int64(startSomewhere(t, nodes, w, session)))
			}
		})
	}
	end := sync.OnceFunc(func() { close(room); load.Wait() })
	defer end()
	for _, n := range nodes {
		count := begun.Load()
		for range each {
			room <- struct{}{}
		}
		require.Eventually(t, func() bool { return begun.Load() >= count+int64(each)/2 }, 2*time.Minute, time.Millisecond, "runs are under way")
		n.stop()
		n.start()
	}
	end()
	handed := 0
	for i := range begun.Load() {
		session := fmt.Sprint("s", i+1)
		nodes[0].waitFor(session, "completed")
		claims := claimants(t, log, session)
		handed += len(claims) - 1
		for r, err := range log.Read(t.Context(), session, 0, 0) {
			require.NoError(t, err)
			require.NotEqual(t, "truncated", r.Type, "%s: a node that drains hands over between steps", session)
		}
	}
	require.Positive(t, handed)
	t.Logf("%d runs, of which %d were handed over; %d requests found a node not ready", begun.Load(), handed, retried.Load())
}

// startSomewhere begins a run of walker at one of the nodes, from first on, and
// returns how many could not take it. A node that stops may cut a connection
// that it has not come to; the same request may then be made again, and may find
// that it was taken before.
func startSomewhere(t *testing.T, nodes []*daemon, first int, session string) (retries int) {
	body, err := json.Marshal(map[string]any{"sessionId": session, "agentType": "walker", "message": "go"})
	if !assert.NoError(t, err) {
		return 0
	}
	for cut := false; ; retries++ {
		resp, err := client.Post(nodes[(first+retries)%len(nodes)].url+"/start", "application/json", bytes.NewReader(body))
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			continue
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			cut = true
			continue
		case !assert.NoError(t, err):
			return retries
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case !assert.NoError(t, err):
			return retries
		case resp.Header.Get("Retry-After") != "": // it has just been started
			continue
		case cut && resp.StatusCode == http.StatusConflict && bytes.Contains(answer, []byte("ALREADY_COMPLETED")):
			return retries
		}
		assert.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", session, answer)
		return retries
	}
}

// A client whose write was acknowledged reads it, at any node.
func TestReadYourWritesAtAnyNode(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	nodes := outsideNodes(t, c.url(), 3)
	last := 0.0
	for i := range 150 {
		chunk := map[string]any{"type": "text_delta", "agentId": "s", "agentType": "x", "timestamp": 1, "step": 1, "delta": fmt.Sprint(i)}
		status, answer := nodes[i%3].post("/sessions/s/chunks", []any{chunk})
		require.Equal(t, http.StatusOK, status, "%v", answer)
		last = answer["lastSequence"].(float64)
		_, summary := nodes[(i+1)%3].get("/sessions/s")
		require.Equal(t, last, summary["headSequence"])
		_, state := nodes[(i+2)%3].get("/sessions/s/state")
		require.Equal(t, last, state["sequence"])
	}
}

// A node is killed in mid-sentence; its runs continue at the others by themselves,
// and a client that follows at another node sees every surviving record once.
func TestAKilledNodesRunsGoOn(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	c := newCluster(t)
	nodes := outsideNodes(t, c.url(), 3)
	log := jetstreamtest.Open(t, connect(t, c.url()), &jetstream.Options{Existing: true})
	nodes[0].ok("/start", map[string]any{"sessionId": "s", "agentType": "stroller", "message": "go"})
	stream, err := client.Get(nodes[1].url + "/sse?sessionId=s")
	require.NoError(t, err)
	defer stream.Body.Close()
	require.Eventually(t, func() bool {
		for r, err := range log.Read(t.Context(), "s", 0, 0) {
			if err == nil && r.Type == "text_delta" {
				return true
			}
		}
		return false
	}, time.Minute, time.Millisecond)
	nodes[0].kill()
	began := time.Now()
	all, err := io.ReadAll(stream.Body)
	require.NoError(t, err)
	require.Contains(t, string(all), "event: end")
	require.Contains(t, string(all), "Now I have arrived.")
	require.Len(t, claimants(t, log, "s"), 2)
	t.Logf("the run ended %s after its first node", time.Since(began))
}

// Each request goes to another node than the one before.
func TestAChatOverAllNodes(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nodes := outsideNodes(t, newCluster(t).url(), 3)
	say := func(n *daemon, agent, text string) *http.Response {
		body, err := json.Marshal(map[string]any{"id": "chat", "agentType": agent, "messages": []any{
			map[string]any{"id": text, "role": "user", "parts": []any{map[string]any{"type": "text", "text": text}}},
		}})
		require.NoError(t, err)
		resp, err := client.Post(n.url+"/chat", "application/json", bytes.NewReader(body))
		require.NoError(t, err)
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	rest := func(resp *http.Response) string {
		all, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s", all)
		return string(all)
	}
	require.Contains(t, rest(say(nodes[0], "careful", "Please walk")), "tool-approval-request")
	_, summary := nodes[1].get("/sessions/chat")
	calls := summary["pendingToolCalls"].([]any)
	require.Len(t, calls, 1)
	nodes[1].ok("/chat/chat/submit-tool-result", map[string]any{
		"kind": "approval-response", "toolCallId": calls[0].(map[string]any)["toolCallId"], "approved": true,
	})
	resp, err := client.Get(nodes[2].url + "/sse?sessionId=chat")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Contains(t, rest(resp), "It was allowed.")
	_, snapshot := nodes[0].get("/chat/chat/snapshot")
	require.Contains(t, fmt.Sprint(snapshot["messages"]), "It was allowed.")

	// A run of one node, seen, refused a message, and stopped at others.
	nodes[0].ok("/start", map[string]any{"sessionId": "long", "agentType": "talker", "message": "go"})
	for _, n := range nodes {
		require.Eventually(t, func() bool { _, s := n.get("/status?sessionId=long"); return s["isExecuting"] == true }, time.Minute, time.Millisecond)
	}
	status, answer := nodes[1].post("/resume", map[string]any{"sessionId": "long", "message": "and?"})
	require.Equal(t, http.StatusConflict, status, "%v", answer)
	stop := func(n *daemon, how, want string) {
		status, answer := n.post(how, map[string]any{"sessionId": "long"})
		require.Contains(t, []int{http.StatusOK, http.StatusGatewayTimeout}, status, "%v", answer) // it waits for seconds only
		nodes[1].waitFor("long", want)
	}
	stop(nodes[2], "/interrupt", "interrupted")
	nodes[2].ok("/resume", map[string]any{"sessionId": "long"})
	stop(nodes[0], "/abort", "failed")
}
