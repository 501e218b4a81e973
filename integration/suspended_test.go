package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
)

const (
	// suspendedSessions is how many sessions TestWaitingCostsNothing suspends,
	// unless HELIX_SUSPENDED says otherwise.
	suspendedSessions = 300
	// idleBytes is how much heap of the loop a suspended session may hold, beside
	// idleSlack for all together. It holds nothing; the bounds are what the log and
	// the server make uncertain. Of 20,000 sessions (make waiting) that is far less
	// than a goroutine or a state.
	idleBytes = 512
	idleSlack = 4 << 20
	// idleGoroutines is how many goroutines may be there beside those before
	// the first session: the log's, which come and go. Sessions add none.
	idleGoroutines = 50
)

// Suspended sessions are records and nothing else (design: waiting costs
// nothing): the loop that has suspended them keeps neither goroutines nor memory
// for them, and another one goes on with them.
func TestWaitingCostsNothing(t *testing.T) {
	n := suspendedSessions
	if s := os.Getenv("HELIX_SUSPENDED"); s != "" {
		var err error
		n, err = strconv.Atoi(s)
		require.NoError(t, err)
	}
	agent := agentloop.Agent{
		Name: "waiter", Tools: []agentloop.Tool{{Name: "ask", Client: true}, approved()},
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "c", Name: "ask"}, {ID: "p", Name: "pay"}}},
			{Text: "Thank you."},
		}, nil),
	}
	g := newRig(t, agent)
	before := runtime.NumGoroutine()
	began := time.Now()
	each(n, func(session string) {
		_, err := g.loop.Start(t.Context(), agentloop.StartRequest{
			SessionID: session, AgentType: "waiter", Messages: []agentloop.Input{{Content: "go"}},
		})
		assert.NoError(t, err)
	})
	for i := range n {
		require.Eventually(t, func() bool { return !g.loop.Live(sessionOf(i)) }, time.Minute, time.Millisecond)
	}
	t.Logf("%d sessions are suspended after %s", n, time.Since(began))

	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+idleGoroutines }, time.Minute, 10*time.Millisecond,
		"%d goroutines before, then %d", before, runtime.NumGoroutine())
	with := heap()
	g.loop.Stop()
	g.loop = nil
	without := heap()
	runtime.KeepAlive(agent)
	held := with - without
	t.Logf("suspended sessions hold %d bytes of the loop each; the log and its server %d", held/int64(n), without/int64(n))
	require.LessOrEqual(t, held, int64(idleSlack+idleBytes*n))

	other, err := agentloop.New(g.log, []agentloop.Agent{agent}, nil)
	require.NoError(t, err)
	t.Cleanup(other.Stop)
	for i := 0; i < n; i += max(n/20, 1) {
		resumeWaiting(t, other, sessionOf(i))
		require.JSONEq(t, `"Thank you."`, string(g.ended(t, sessionOf(i)).Output))
	}
}

func approved() agentloop.Tool {
	pay := agentloop.NewTool("pay", "", func(_ context.Context, _ *agentloop.Call, _ struct{}) (string, error) { return "paid", nil })
	pay.RequireApproval = agentloop.AlwaysApprove
	return pay
}

func sessionOf(i int) string { return fmt.Sprintf("waiting-%d", i) }

// each calls f for all sessions, several at a time.
func each(n int, f func(session string)) {
	const workers = 64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				f(sessionOf(i))
			}
		})
	}
	all.Wait()
}

// heap is what is in use when all garbage is gone, in bytes: the least that is
// seen while the server does what it does in the background.
func heap() int64 {
	least := int64(math.MaxInt64)
	for range 10 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, int64(m.HeapAlloc))
	}
	return least
}

// resumeWaiting answers what a session waits for.
func resumeWaiting(t *testing.T, l *agentloop.Loop, session string) {
	t.Helper()
	handle, err := l.Handle(t.Context(), session)
	require.NoError(t, err)
	result, err := handle.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, eventlog.RunClientTool, result.Status)
	require.Equal(t, []string{"c", "p"}, result.Suspended.ToolCallIDs)
	for _, sub := range []agentloop.Submission{
		{ToolCallID: "c", Kind: eventlog.SubmitClientResult, Result: json.RawMessage(`"yes"`)},
		{ToolCallID: "p", Kind: eventlog.SubmitApproval, Approved: true},
	} {
		sub.SessionID = session
		_, err := l.Submit(t.Context(), sub)
		require.NoError(t, err)
	}
	_, err = l.Resume(t.Context(), agentloop.ResumeRequest{SessionID: session})
	require.NoError(t, err)
}
