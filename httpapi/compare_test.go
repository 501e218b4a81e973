package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/scripted"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/auth"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
	"github.com/helixd/helixd/snapshot"
	folds "github.com/helixd/helixd/snapshot/memory"
)

// comparison is httpapi.Comparison as a client reads it.
type comparison struct {
	A, B       api.Compared
	Common     int
	Patch      json.RawMessage
	ForkedFrom *projector.Fork
}

// compare checks a comparison against the states that it is of.
func (a *testAPI) compare(query string) comparison {
	a.t.Helper()
	got := a.get("/compare?" + query)
	require.Equal(a.t, 200, got.status, got.body)
	var c comparison
	got.decode(a.t, &c)
	var states [2]projector.Session
	for i, side := range []api.Compared{c.A, c.B} {
		require.NoError(a.t, json.Unmarshal(a.stateAt(side.SessionID, side.Sequence), &states[i]))
		require.Equal(a.t, states[i].Messages, append(states[i].Messages[:0:0], side.Messages...))
		require.Equal(a.t, []any{states[i].Status, states[i].AgentType}, []any{side.Status, side.AgentType})
		diff := a.diffs(side.SessionID, 0, side.Sequence)
		require.Equal(a.t, diff.Spent, side.Spent)
		require.Len(a.t, side.ToolCalls, len(diff.ToolCalls))
		for i, call := range diff.ToolCalls {
			require.Equal(a.t, []any{call.ToolCallID, call.After}, []any{side.ToolCalls[i].ToolCallID, side.ToolCalls[i].Status})
		}
	}
	patch, err := jsonpatch.DecodePatch(c.Patch)
	require.NoError(a.t, err)
	custom := func(s projector.Session) []byte {
		if s.CustomState.String() == "null" {
			return []byte("{}")
		}
		return s.CustomState.Bytes()
	}
	next, err := patch.Apply(custom(states[0]))
	require.NoError(a.t, err)
	require.JSONEq(a.t, string(custom(states[1])), string(next))
	return c
}

// counters are agents that record in their state what they received, one step a call.
func counters() []agentloop.Agent {
	type state struct {
		Noted []string `json:"noted"`
	}
	note := agentloop.NewTool("note", "Notes.", func(_ context.Context, c *agentloop.Call, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return "<" + in.Text + ">", agentloop.UpdateState(c, func(s *state) error {
			s.Noted = append(s.Noted, in.Text)
			return nil
		})
	})
	script := []scripted.Turn{
		{ToolCalls: []scripted.Call{{Name: "note", Arguments: []byte(`{"text":"a<b>"}`)}}},
		{ToolCalls: []scripted.Call{{Name: "note", Arguments: []byte(`{"text":"second"}`)}}},
		{Text: "noted"},
	}
	other := append([]scripted.Turn{script[0]}, scripted.Turn{Text: "that is all"})
	for i := range script {
		script[i].Usage = fact.TokenUsage{Prompt: int64(10 * (i + 1)), Completion: 1, Total: int64(10*(i+1) + 1)}
	}
	return []agentloop.Agent{
		{Name: "two", Tools: []agentloop.Tool{note}, Model: scripted.New(script, nil)},
		{Name: "one", Tools: []agentloop.Tool{note}, Model: scripted.New(other, nil)},
	}
}

// TestCompareWithAFork: what both have in common, and then what each has of its
// own.
func TestCompareWithAFork(t *testing.T) {
	t.Parallel()
	a := newAPIOn(t, newLog(t), counters())
	a.begin("s", "two")
	var checkpoints api.Page[projector.Checkpoint]
	a.get("/sessions/s/checkpoints").decode(t, &checkpoints)
	require.Equal(t, 3, checkpoints.Total)
	at := checkpoints.Items[0].StreamSequence
	require.Equal(t, 200, a.post("/sessions/s/fork", fmt.Sprintf(`{"sessionId":"f","sequence":%d}`, at)).status)

	same := a.compare(fmt.Sprintf("a=s&aAt=%d&b=f", at))
	require.Equal(t, 3, same.Common, "what was said, whatever became of sequences and of how JSON is written")
	require.JSONEq(t, "[]", string(same.Patch))
	require.Equal(t, &projector.Fork{SessionID: "s", Sequence: at, Record: a.tree("f").ForkedFrom.Record}, same.ForkedFrom)
	require.Empty(t, same.B.Steps, "a fork's steps are its own")
	require.Zero(t, same.B.Usage)

	require.Equal(t, 200, a.post("/resume", `{"sessionId":"f","message":"and now?"}`).status)
	a.wait("f")
	c := a.compare("a=s&b=f")
	require.Equal(t, 3, c.Common)
	require.Equal(t, projector.RoleAssistant, c.A.Messages[3].Role)
	require.Equal(t, "and now?", c.B.Messages[3].Content)
	require.Equal(t, same.ForkedFrom, c.ForkedFrom)
	require.Equal(t, same.ForkedFrom, a.compare("a=f&b=s").ForkedFrom, "whichever way round")
	require.Len(t, c.A.ToolCalls, 2)
	require.Equal(t, api.CallAt{
		SessionID: "s", ToolCallID: c.A.ToolCalls[0].ToolCallID, ToolName: "note", Arguments: json.RawMessage(`{"text":"a<b>"}`),
		Status: api.CallDone, Result: json.RawMessage(`"\u003ca\u003cb\u003e\u003e"`),
	}, c.A.ToolCalls[0])

	var turns, prompts []int64
	for i, step := range c.A.Steps {
		require.Equal(t, []int{1, i + 1}, []int{step.Turn, step.Step})
		require.GreaterOrEqual(t, step.DurationMs, int64(0))
		turns, prompts = append(turns, step.Usage.Total), append(prompts, step.Usage.Prompt)
	}
	require.Equal(t, []int64{11, 21, 31}, turns)
	require.Equal(t, []int64{10, 20, 30}, prompts)
	require.NotEmpty(t, c.B.Steps)
	require.Equal(t, 2, c.B.Steps[0].Step, "it continues where it was forked")

	// A fork of the fork is not one of the first.
	require.Equal(t, 200, a.post("/sessions/f/fork", `{"sessionId":"g"}`).status)
	require.Nil(t, a.compare("a=s&b=g").ForkedFrom)
}

// TestCompareSessions: sessions that have nothing to do with each other, one
// with its own past, and one before everything.
func TestCompareSessions(t *testing.T) {
	testkit.OneGoroutine(t)
	t.Parallel()
	a := newAPIOn(t, memory.New(), append(counters(), waitingAgents()...), priced)
	a.begin("s", "two")
	a.begin("t", "one")
	c := a.compare("a=s&b=t")
	require.Equal(t, 3, c.Common, "ids, times and sequences are not what is said")
	require.Nil(t, c.ForkedFrom)
	require.NotEqual(t, "[]", string(c.Patch))
	require.Equal(t, []int{3, 2}, []int{len(c.A.Steps), len(c.B.Steps)})
	require.Equal(t, a.head("s"), c.A.Sequence)

	self := a.compare("a=s&b=s")
	require.Equal(t, self.A, self.B)
	require.Equal(t, len(self.A.Messages), self.Common)
	require.JSONEq(t, "[]", string(self.Patch))

	for at := range a.head("s") + 1 {
		past := a.compare(fmt.Sprintf("a=s&aAt=%d&b=s", at))
		require.Equal(t, at, past.A.Sequence)
		require.Equal(t, past.Common, len(past.A.Messages), "it has only been added to")
		require.LessOrEqual(t, len(past.A.Steps), len(past.B.Steps))
	}
	none := a.compare("a=s&aAt=0&b=t&bAt=0")
	require.Zero(t, none.Common)
	require.Equal(t, "s", none.A.SessionID)
	require.Contains(t, a.get("/compare?a=s&aAt=0&b=t&bAt=0").body, `"messages":[],"toolCalls":[]`)

	// Sub-agents' calls are their tree's.
	a.begin("p", "parent")
	p := a.compare("a=p&b=s").A
	require.Equal(t, []string{"p", "p-sub-task"}, []string{p.ToolCalls[0].SessionID, p.ToolCalls[1].SessionID})
	require.Equal(t, []api.CallStatus{api.CallWaiting, api.CallWaiting}, []api.CallStatus{p.ToolCalls[0].Status, p.ToolCalls[1].Status})
	require.Equal(t, 1, len(p.Steps))

	// What was rolled back is no step any more, but was used.
	require.Equal(t, 200, a.post("/sessions/s/rollback", fmt.Sprintf(`{"sequence":%d}`, a.tree("s").Messages[0].Sequence)).status)
	back := a.compare("a=s&b=t")
	require.Empty(t, back.A.Steps)
	require.Equal(t, 1, back.Common)
	require.Equal(t, c.A.Usage, back.A.Usage)
}

// TestCompareOfSteps: a step takes as long as from its first record to its
// last, what it waits for included.
func TestCompareOfSteps(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	at := func(ms int64) fact.Base { return fact.Base{SessionID: "s", Timestamp: ms} }
	by := func(ms int64, step int) eventlog.Base {
		return eventlog.Base{AgentID: "s", AgentType: "writer", Timestamp: ms, Step: step}
	}
	call := fact.ToolCall{ID: "c", Name: "look", Arguments: json.RawMessage(`{}`)}
	a.append("s", created("s"), requested("s", "run-1"),
		chunk(&eventlog.StepStart{StepID: new("one"), Base: by(1000, 1)}),
		factOf("s", &fact.ModelTurn{RunID: "run-1", StepID: "one", Step: 1, StopReason: fact.StopToolUse, Parts: []fact.TurnPart{{ToolCall: &call}}, Base: at(1500)}),
		factOf("s", &fact.ToolResult{RunID: "run-1", StepID: "one", ToolCallID: "c", ToolName: "look", Result: json.RawMessage(`1`), Base: at(61500)}),
		chunk(&eventlog.StepCommitted{RunID: "run-1", StepID: "one", CheckpointID: "cp", Base: by(61600, 1)}),
		chunk(&eventlog.StepStart{StepID: new("two"), Base: by(62000, 2)}),
		factOf("s", &fact.ModelFailed{RunID: "run-1", StepID: "two", Step: 2, Attempt: 1, Error: "busy", Code: "x", Retryable: true, Base: at(62100)}),
		chunk(&eventlog.StepStart{StepID: new("two"), Base: by(63000, 2)}),
		factOf("s", &fact.ModelTurn{RunID: "run-1", StepID: "two", Step: 2, StopReason: fact.StopEndTurn, Parts: []fact.TurnPart{{Text: "x"}}, Base: at(64000)}))
	require.Empty(t, a.tree("s").Parked)
	require.Equal(t, []projector.StepTime{{Turn: 1, Step: 1, DurationMs: 60600}, {Turn: 1, Step: 2, DurationMs: 2000}}, a.compare("a=s&b=s").A.Steps)
}

func TestCompareRefusals(t *testing.T) {
	a := newAPIOn(t, memory.New(), nil)
	head := a.append("s", created("s"), text("s", "a"))[1]
	for query, field := range map[string]string{
		"": "a", "a=s": "b", "b=s": "a", "a=&b=s": "a", "a=s&b=": "b", "a=%00&b=s": "a", "a=s&b=%00": "b", "a=s&a=s&b=s": "a",
		"a=s&b=s&aAt=": "aAt", "a=s&b=s&bAt=x": "bAt", "a=s&b=s&bAt=-1": "bAt",
	} {
		body := a.get("/compare?"+query).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": field}, body.Detail, query)
	}
	for _, query := range []string{"a=s&b=s&aAt=9", "a=s&b=s&bAt=9"} {
		body := a.get("/compare?"+query).failed(t, 416, api.CodeCursorAhead)
		require.Equal(t, map[string]any{"head": float64(head)}, body.Detail)
	}
	for _, query := range []string{"a=s&b=nobody", "a=nobody&b=s", "a=s&b=nobody&bAt=0"} {
		a.get("/compare?"+query).failed(t, 404, api.CodeNotFound)
	}
	require.Equal(t, "GET, HEAD", a.post("/compare", "{}").header.Get("Allow"))
}

// TestCompareWhatIsLeft: the steps of records that retention has removed are missing; the
// others are shown.
func TestCompareWhatIsLeft(t *testing.T) {
	t.Parallel()
	log := newLog(t).(*jetstream.Log)
	states := snapshot.New(log, &snapshot.StoreOptions{Folds: new(folds.Folds), SaveEvery: 1})
	a := newAPIOn(t, log, waitingAgents(), func(o *httpapi.Options) { o.States = states })
	a.begin("s", "asker")
	require.NoError(t, log.Seal(a.ctx(), "s"))
	require.Equal(t, 200, a.post("/resume", `{"sessionId":"s","mode":"with_confirmation","approved":true}`).status)
	a.wait("s")
	require.Len(t, a.compare("a=s&b=s").A.Steps, 2)
	require.NoError(t, log.Seal(a.ctx(), "s"))
	_, err := log.Purge(a.ctx(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
	require.NoError(t, err)
	require.Equal(t, 200, a.post("/retention", `{"purgeOlderThan":"0s","dropOlderThan":"0s"}`).status)
	a.get("/sessions/s/records").failed(t, 410, api.CodeTruncated)
	got := a.get("/compare?a=s&b=s")
	require.Equal(t, 200, got.status, got.body)
	var c comparison
	got.decode(t, &c)
	require.Len(t, c.A.Messages, 4)
	require.Less(t, len(c.A.Steps), 2)
}

// reads counts the reads of a log.
type reads struct {
	eventlog.Log
	n atomic.Int64
}

func (l *reads) Read(ctx context.Context, session string, from, to uint64) iter.Seq2[eventlog.Record, error] {
	l.n.Add(1)
	return l.Log.Read(ctx, session, from, to)
}

// A caller's comparisons are made one at a time. One that waits has read nothing:
// loading large states takes as much of a node as comparing them.
func TestComparisonsLoadTheirStatesInTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		token   string
		caller  auth.Caller
		targets []string
	}{
		{"plain", auth.Caller{Name: "plain's token"}, []string{"/compare?a=one&b=two", "/sessions/one/diff", "/sessions/one/diff?only=spent"}},
		{"ann", auth.Caller{Tenant: "red"}, []string{"/compare?a=one&b=two", "/compare?a=two&b=one"}}, // whether they are ann's is read, too
	} {
		t.Run(c.token, func(t *testing.T) {
			log := &reads{Log: memory.New()}
			a := newAPIOn(t, log, nil, withUsers)
			a.finishedOf("ann", "one")
			a.finishedOf("ann", "two")
			done, err := httpapi.HoldDiff(a.srv, c.caller)
			require.NoError(t, err)
			before := log.n.Load()
			answers := make(chan answer)
			for _, target := range c.targets {
				go func() { answers <- a.get(target, bearer(c.token)...) }()
			}
			require.Eventually(t, func() bool { return httpapi.Diffing(a.srv, c.caller) == 1+len(c.targets) }, 20*time.Second, time.Millisecond)
			require.Equal(t, before, log.n.Load(), "they wait before they read")
			require.Equal(t, 200, a.get("/compare?a=one&b=two", bearer("desk")...).status, "another caller does not wait")
			require.Empty(t, answers)
			done()
			for range c.targets {
				require.Equal(t, 200, (<-answers).status)
			}
			// An answer arrives before its handler has returned.
			require.Eventually(t, func() bool { return httpapi.Diffing(a.srv, c.caller) == 0 }, 20*time.Second, time.Millisecond)
			require.Greater(t, log.n.Load(), before)
		})
	}
}
