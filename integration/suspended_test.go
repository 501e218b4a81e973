package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
)

const (
	// suspendedSessions is how many sessions TestWaitingCostsNothing suspends,
	// unless HELIX_SUSPENDED says otherwise.
	suspendedSessions = 300
	// idleBytes is how much heap a suspended session may hold in helixd, beside
	// idleSlack for all together. It holds nothing; the bounds are what a sample
	// leaves uncertain. Of 20,000 sessions (make waiting) that is far less than a
	// goroutine or a state.
	idleBytes = 256
	idleSlack = 8 << 20
	// idleGoroutines is how many goroutines may be there beside those before
	// the first session: the log's, which come and go. Sessions add none.
	idleGoroutines = 50
)

// Suspended sessions are records and nothing else (design: waiting costs
// nothing): the loop that has suspended them keeps neither goroutines nor memory
// for them, and another one continues with them.
func TestWaitingCostsNothing(t *testing.T) {
	testkit.Slow(t)
	n := testkit.Count(t, "HELIX_SUSPENDED", suspendedSessions)
	agent := agentloop.Agent{
		Name: "waiter", Tools: []agentloop.Tool{{Name: "ask", Client: true}, approved()},
		Model: scripted.New([]scripted.Turn{
			{ToolCalls: []scripted.Call{{ID: "c", Name: "ask"}, {ID: "p", Name: "pay"}}},
			{Text: "Thank you."},
		}, nil),
	}
	rate := runtime.MemProfileRate
	runtime.MemProfileRate = 16 << 10
	defer func() { runtime.MemProfileRate = rate }()
	g := newRig(t, agent)
	before := runtime.NumGoroutine()
	began := time.Now()
	each(n, func(session string) {
		_, err := g.loop.Start(t.Context(), engine.StartRequest{
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
	// The log keeps a session's last records until they are sealed in a segment.
	require.Eventually(t, func() bool {
		held := heldByHelixd()
		t.Logf("after %s suspended sessions hold %d bytes each", time.Since(began), held/int64(n))
		return held <= int64(idleSlack+idleBytes*n)
	}, 3*time.Minute, time.Second)
	g.loop.Stop()

	other, err := engine.New(g.log, []agentloop.Agent{agent}, nil)
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

// heldByHelixd estimates the bytes in use that helixd's code allocated, in bytes:
// what the embedded server allocated for itself, in its own goroutines, comes and
// goes with its caches and is left out.
func heldByHelixd() int64 {
	runtime.GC()
	runtime.GC() // a profile tells of the collection before the last one
	n, _ := runtime.MemProfile(nil, false)
	records := make([]runtime.MemProfileRecord, 2*n+100)
	n, ok := runtime.MemProfile(records, false)
	if !ok {
		panic("the memory profile grew while it was read")
	}
	held := 0.0
	for _, r := range records[:n] {
		if r.InUseObjects() == 0 || !helixdAllocated(r.Stack()) {
			continue
		}
		// The profile is a sample: an object of size s is in it with probability
		// 1-exp(-s/rate).
		bytes := float64(r.InUseBytes())
		size := bytes / float64(r.InUseObjects())
		held += bytes / -math.Expm1(-size/float64(runtime.MemProfileRate))
	}
	return int64(held)
}

func helixdAllocated(stack []uintptr) bool {
	frames := runtime.CallersFrames(stack)
	for more := len(stack) > 0; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if strings.Contains(f.Function, "/helixd/embed.") || strings.Contains(f.Function, "/helixd/integration") {
			return false
		}
		for _, p := range []string{"agentloop", "eventlog", "projector"} {
			if strings.Contains(f.Function, "/helixd/"+p) {
				return true
			}
		}
	}
	return false
}

// resumeWaiting answers what a session waits for.
func resumeWaiting(t *testing.T, l *engine.Loop, session string) {
	t.Helper()
	handle, err := l.Handle(t.Context(), session)
	require.NoError(t, err)
	result, err := handle.Result(t.Context())
	require.NoError(t, err)
	require.Equal(t, fact.RunClientTool, result.Status)
	require.Equal(t, []string{"c", "p"}, result.Suspended.ToolCallIDs)
	for _, sub := range []engine.Submission{
		{ToolCallID: "c", Kind: fact.SubmitClientResult, Result: json.RawMessage(`"yes"`)},
		{ToolCallID: "p", Kind: fact.SubmitApproval, Approved: true},
	} {
		sub.SessionID = session
		_, err := l.Submit(t.Context(), sub)
		require.NoError(t, err)
	}
	_, err = l.Resume(t.Context(), engine.ResumeRequest{SessionID: session})
	require.NoError(t, err)
}
