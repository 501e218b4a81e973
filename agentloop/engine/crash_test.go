package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/agentloop/model"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// mortal is a log whose process dies: after a number of appends nothing gets
// through any more. With lastStored the fatal append is stored unanswered.
type mortal struct {
	eventlog.Log
	left       atomic.Int64
	lastStored bool
	dead       chan struct{}
	once       sync.Once
}

func (m *mortal) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	left := m.left.Add(-1)
	if left >= 0 {
		return m.Log.Append(ctx, session, expected, entries)
	}
	if left == -1 && m.lastStored {
		_, _ = m.Log.Append(ctx, session, expected, entries)
	}
	m.once.Do(func() { close(m.dead) })
	return 0, eventlog.ErrClosed
}

// workload is an agent with memories, reasoning, text, parallel tools that change the
// state, events, and structured output. It counts what is done.
type workload struct {
	mu       sync.Mutex
	asked    map[int]int                // model calls by assistant messages before
	recalled int                        // how often it was asked what it remembers
	executed map[string]int             // completed executions by call
	keys     map[string]map[string]bool // idempotency keys by call
}

func newWorkload() *workload {
	return &workload{asked: map[int]int{}, executed: map[string]int{}, keys: map[string]map[string]bool{}}
}

type countingModel struct {
	model.Model
	w *workload
}

func (c countingModel) Generate(ctx context.Context, req model.Request, emit func(model.Event) error) (model.Answer, error) {
	n := 0
	for _, m := range req.Messages {
		if m.Role == model.RoleAssistant {
			n++
		}
	}
	c.w.mu.Lock()
	c.w.asked[n]++
	c.w.mu.Unlock()
	return c.Model.Generate(ctx, req, emit)
}

// Recall is what the agent remembers.
func (w *workload) Recall(_ context.Context, req agentloop.RecallRequest) ([]fact.RecalledMemory, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recalled++
	return []fact.RecalledMemory{{MemoryID: "m1", Content: "They said " + req.Query + " before.", Score: 0.5}}, nil
}

func (w *workload) agent() agentloop.Agent {
	note := agentloop.NewTool("note", "", func(ctx context.Context, c *agentloop.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		w.mu.Lock()
		if w.keys[c.ID] == nil {
			w.keys[c.ID] = map[string]bool{}
		}
		w.keys[c.ID][c.IdempotencyKey] = true
		w.mu.Unlock()
		for i := range 2 {
			if err := c.Emit(ctx, "progress", i); err != nil {
				return "", err
			}
			err := agentloop.UpdateState(c, func(s *counterState) error {
				s.Count++
				return nil
			})
			if err != nil {
				return "", err
			}
		}
		w.mu.Lock()
		w.executed[c.ID]++
		w.mu.Unlock()
		return "noted " + in.Text, nil
	})
	return agentloop.Agent{
		Name: "worker", Tools: []agentloop.Tool{note}, Recall: w,
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"sum":{"type":"integer"}}}`),
		Model: countingModel{w: w, Model: script(
			scripted.Turn{Reasoning: "First I think.", Text: "Let me note that.", ToolCalls: []scripted.Call{
				{ID: "call_0", Name: "note", Arguments: json.RawMessage(`{"text":"a b c"}`)},
				{ID: "call_1", Name: "note", Arguments: json.RawMessage(`{"text":"d"}`)},
			}, Usage: fact.TokenUsage{Prompt: 10, Completion: 3}},
			scripted.Turn{Text: "And again.", ToolCalls: []scripted.Call{
				{ID: "call_0", Name: "note", Arguments: json.RawMessage(`{"text":"e"}`)}, // the provider repeats itself
			}},
			scripted.Turn{Text: "Done.", ToolCalls: []scripted.Call{
				{Name: "__finish__", Arguments: json.RawMessage(`{"sum":6}`)},
			}},
		)},
	}
}

// outcome is what must not depend on crashes.
func outcome(t *testing.T, s *projector.Tree) string {
	t.Helper()
	messages := make([]projector.Message, len(s.Messages))
	for i, m := range s.Messages {
		m.Timestamp, m.Sequence = 0, 0
		if m.Denial != nil { // of a run with another id
			m.Denial = &projector.Denial{Reason: m.Denial.Reason}
		}
		messages[i] = m
	}
	committed := map[[2]int]bool{} // by turn and step; whether an interrupt comes to its checkpoint depends on crashes
	for _, cp := range s.Checkpoints {
		for _, run := range s.Runs {
			if run.RunID == cp.RunID && cp.StepCount > 0 {
				committed[[2]int{run.Turn, cp.StepCount}] = true
			}
		}
	}
	raw, err := json.MarshalIndent(map[string]any{
		"status": s.Status, "stream": s.StreamStatus, "messages": messages, "state": s.CustomState,
		"output": s.Output, "usage": s.Usage.Totals, "steps": s.StepCount, "checkpoints": len(committed),
		"parked": s.Parked, "turn": s.Turn,
	}, "", " ")
	require.NoError(t, err)
	return string(raw)
}

// content is the effective stream's content by agent and tool call, since these
// interleave; without times, without the ids of runs, and without the values of
// patches, which depend on the order.
func content(t *testing.T, log eventlog.Log, session string) map[string]string {
	t.Helper()
	byCall := map[string][]map[string]any{}
	for r, err := range eventlog.Effective(t.Context(), log, session, 0, 0) {
		require.NoError(t, err)
		if !eventlog.ScopeRun.Truncates(r.Envelope) {
			continue
		}
		var m map[string]any
		require.NoError(t, json.Unmarshal(r.Payload, &m))
		delete(m, "timestamp")
		delete(m, "patches")
		delete(m, "approvalId")
		key := r.Agent + " " + r.Call
		all := byCall[key]
		if len(all) == 0 || !goesOn(all[len(all)-1], m) {
			byCall[key] = append(all, m)
		}
	}
	out := map[string]string{}
	for call, all := range byCall {
		for _, m := range all {
			raw, err := json.Marshal(m)
			require.NoError(t, err)
			out[call] += string(raw) + "\n"
		}
	}
	return out
}

// goesOn adds what next says to last, if both are deltas of the same.
func goesOn(last, next map[string]any) bool {
	field := map[any]string{"text_delta": "delta", "tool_arg_stream_delta": "delta", "thinking": "content"}[next["type"]]
	if field == "" || next["isComplete"] == true {
		return false
	}
	before, after := maps.Clone(last), maps.Clone(next)
	delete(before, field)
	delete(after, field)
	if !reflect.DeepEqual(before, after) {
		return false
	}
	last[field] = last[field].(string) + next[field].(string)
	return true
}

func TestDeathAtAnyAppendLeavesTheSameOutcome(t *testing.T) {
	testkit.Slow(t)
	calm, log := newWorkload(), memory.New()
	agent, said := calm.agent(), 0
	agent.Model = paced{Model: agent.Model, log: log, said: &said}
	g := newRigOn(t, log, agent)
	g.start("s", "worker", "go")
	want := outcome(t, g.ended("s"))
	wantContent := content(t, g.log, "s")
	appends := writes(t, g.log)

	for _, pace := range []bool{false, true} {
		for _, stored := range []bool{false, true} {
			for after := 1; after < appends; after++ { // the first is the request itself
				t.Run(fmt.Sprintf("after %d, stored %v, paced %v", after, stored, pace), func(t *testing.T) {
					t.Parallel()
					died := survives(t, after, stored, pace, want, wantContent)
					if pace && after < said { // every piece is its own append
						require.True(t, died)
					}
				})
			}
		}
	}
}

// writes returns an upper bound of the appends that a log has had.
func writes(t *testing.T, log eventlog.Log) int {
	t.Helper()
	n := 0
	for _, err := range log.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		n++
	}
	return n
}

// survives reports whether the first process has died before the run's end.
func survives(t *testing.T, after int, stored, pace bool, want string, wantContent map[string]string) (died bool) {
	w := newWorkload()
	store := memory.New()
	dying := &mortal{Log: store, lastStored: stored, dead: make(chan struct{})}
	dying.left.Store(int64(after))
	agent := w.agent()
	if pace {
		agent.Model = paced{Model: agent.Model, log: store, dead: dying.dead}
	}
	first := newRigOn(t, dying, agent)
	first.start("s", "worker", "go")
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for r, err := range store.Follow(t.Context(), "s", 0) {
			if err != nil || r.Type == "stream_end" {
				return
			}
		}
	}()
	select {
	case <-dying.dead:
		died = true
	case <-finished:
	}
	first.loop.Stop()
	executed := len(w.executed)
	before := stateOf(t, store, "s")

	second := newRigOn(t, store, w.agent())
	if before.StreamStatus.Terminal() {
		require.Zero(t, before.ResumeCount)
	} else {
		_, err := second.loop.Resume(t.Context(), engine.ResumeRequest{SessionID: "s"})
		require.NoError(t, err)
	}
	state := second.ended("s")
	<-finished
	require.Equal(t, want, outcome(t, state))
	require.Equal(t, wantContent, content(t, store, "s"))

	if before.Turn == nil || before.Turn.Recalled {
		require.Equal(t, 1, w.recalled, "what was recalled is recorded and is asked for once")
	}
	recorded := 0
	for _, m := range before.Messages {
		if m.Role == projector.RoleAssistant {
			recorded++
		}
	}
	for n := range recorded {
		require.Equal(t, 1, w.asked[n], "model turn %d was recorded and is asked for once", n)
	}
	for _, m := range before.Messages {
		if m.Role == projector.RoleTool && m.ToolName == "note" {
			require.Equal(t, 1, w.executed[m.ToolCallID], "call %s had its result", m.ToolCallID)
		}
	}
	for id, keys := range w.keys {
		require.Len(t, keys, 1, "idempotency key of %s", id)
	}
	require.LessOrEqual(t, executed, 3)

	// A resync is sent only if something was truncated.
	resyncs, markers := 0, 0
	var records []eventlog.Record
	for r, err := range store.Read(t.Context(), "s", 0, 0) {
		require.NoError(t, err)
		records = append(records, r)
		switch r.Type {
		case "stream_resync":
			resyncs++
		case "truncated":
			markers++
		}
	}
	require.Equal(t, markers, resyncs)
	requireStepsEnd(t, records)
	if len(before.Orphans()) > 0 {
		require.Equal(t, 1, markers)
	} else {
		require.Zero(t, markers)
	}
	return died
}
