package projector_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/integration/testkit"
	"github.com/helixd/helixd/projector"
)

// rollbackTo is the marker of a rollback to the state t, written at a head.
func rollbackTo(t *projector.Tree, head uint64) eventlog.Entry {
	restore, err := projector.RestoreAt(t)
	if err != nil {
		panic(err)
	}
	f := &eventlog.Truncated{
		Reason: eventlog.ResyncRollback, AfterSequence: t.Head, AtSequence: head, Restore: restore, Base: factBase("s"),
	}
	for _, agent := range []string{"s", "child"} {
		if t.Head < head {
			f.Ranges = append(f.Ranges, eventlog.Range{AgentID: agent, From: t.Head + 1, To: head, Scope: eventlog.ScopeAll})
		}
	}
	return factOf("s", f)
}

// next is a record after others.
func next(records []eventlog.Record, e eventlog.Entry) []eventlog.Record {
	return append(slices.Clip(records), eventlog.Record{Sequence: records[len(records)-1].Sequence + 2, Entry: e})
}

// step is the content of a step: a streamed answer with calls, which finish
// in reverse order with patches, and its commit.
func step(id string, n int, text string, calls ...string) []eventlog.Entry {
	b := base("s")
	b.Step = n
	parts := []fact.TurnPart{{Text: text}}
	entries := []eventlog.Entry{
		chunk(&eventlog.StepStart{StepID: &id, Base: b}, ""), chunk(&eventlog.Thinking{Content: "hm", Base: b}, ""),
		chunk(&eventlog.Thinking{Content: "hm", IsComplete: true, Base: b}, ""), chunk(&eventlog.TextDelta{Delta: text, Base: b}, ""),
	}
	for _, c := range calls {
		entries = append(entries, chunk(&eventlog.ToolArgStreamStart{ToolCallID: c, ToolName: "note", Base: b}, ""),
			chunk(&eventlog.ToolArgStreamDelta{ToolCallID: c, Delta: `{}`, Base: b}, ""), chunk(&eventlog.ToolArgStreamEnd{ToolCallID: c, Base: b}, ""))
		parts = append(parts, fact.TurnPart{ToolCall: &fact.ToolCall{ID: c, Name: "note", Arguments: json.RawMessage(`{"a":"<&>"}`)}})
	}
	entries = append(entries, factOf("s", &fact.ModelTurn{
		RunID: "r", StepID: id, Step: n, Parts: parts, StopReason: fact.StopToolUse,
		Usage: fact.TokenUsage{Prompt: 3, Completion: 1, Total: 4}, Base: factBase("s"),
	}))
	for _, c := range calls {
		entries = append(entries, chunk(&eventlog.ToolStart{ToolCallID: c, ToolName: "note", Arguments: json.RawMessage(`{}`), Base: b}, c))
	}
	for _, c := range slices.Backward(calls) {
		entries = append(entries, chunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{
			{Op: "add", Path: "/" + c, Value: json.RawMessage(`"<` + c + `>"`)},
		}, Base: b}, c), factOf("s", &fact.ToolResult{
			RunID: "r", StepID: id, ToolCallID: c, ToolName: "note", Result: json.RawMessage(`1`), Base: factBase("s"),
		}))
	}
	return append(entries,
		chunk(&eventlog.StepEnd{StepID: &id, Base: b}, ""),
		chunk(&eventlog.StepCommitted{RunID: "r", StepID: id, CheckpointID: "cp-" + id, Base: b}, ""),
		chunk(&eventlog.CheckpointCreated{RunID: "r", CheckpointID: "cp-" + id, StepCount: n, Base: b}, ""))
}

// conversation has a completed turn, one that waits for a client's tool and fails when it
// is resumed, and one in progress, with a sub-agent.
func conversation() []eventlog.Record {
	run := func(id string, mode fact.RunMode) eventlog.Entry {
		return factOf("s", &fact.RunRequested{RunID: id, Mode: mode, Base: factBase("s")})
	}
	claim := func(id string) eventlog.Entry {
		e := factOf("s", &fact.RunClaimed{RunID: id, Node: "n", Attempt: 1, Base: factBase("s")})
		e.Writer, e.Ordinal = "w-"+id, 1
		return e
	}
	user := func(text string) eventlog.Entry {
		return factOf("s", &fact.UserMessage{Content: text, Base: factBase("s")})
	}
	ended := func(f *fact.RunEnded) eventlog.Entry {
		f.Base = factBase("s")
		return factOf("s", f)
	}
	st := "t3-1"
	third := base("s")
	log := [][]eventlog.Entry{
		{factOf("s", &fact.SessionCreated{AgentType: "a", State: json.RawMessage(`{"n":"<1>"}`), Base: factBase("s")})},
		{user("one"), run("r1", fact.ModeStart), claim("r1")},
		step("t1-1", 1, "first", "c1", "c2"), step("t1-2", 2, "second"),
		{chunk(&eventlog.Output{Output: json.RawMessage(`{"done":1}`), Base: base("s")}, "")},
		{ended(&fact.RunEnded{RunID: "r1", Status: fact.RunCompleted, Output: json.RawMessage(`{"done":1}`)})},
		{factOf("s", &fact.StreamEnd{StreamID: "s", Timestamp: 9, FinalOutput: json.RawMessage(`{"done":1}`)})},
		keyed("k", "d", 2)[:1],
		{user("two"), run("r2", fact.ModeStart), claim("r2")},
		step("t2-1", 1, "third", "c3"),
		{ended(&fact.RunEnded{RunID: "r2", Status: fact.RunClientTool})},
		{factOf("s", &fact.StreamPaused{Base: factBase("s")})},
		{run("r3", fact.ModeContinue), factOf("s", &fact.StreamResumed{Base: factBase("s")}), claim("r3")},
		{factOf("s", &fact.ModelFailed{RunID: "r3", StepID: "t2-2", Step: 2, Attempt: 1, Error: "e", Code: "c", Base: factBase("s")})},
		{ended(&fact.RunEnded{RunID: "r3", Status: fact.RunFailed, Error: "broke", ErrorCode: "c"})},
		{factOf("s", &fact.StreamFailed{Error: "broke", Base: factBase("s")})},
		{user("three"), run("r4", fact.ModeStart), claim("r4")},
		{factOf("child", &fact.SessionCreated{AgentType: "b", State: json.RawMessage(`{"c":1}`), Base: factBase("child")})},
		{chunk(&eventlog.StatePatch{Patches: []eventlog.PatchOp{{Op: "add", Path: "/d", Value: json.RawMessage(`2`)}}, Base: base("child")}, "")},
		{factOf("child", &fact.UserMessage{Content: "for the child", Base: factBase("child")})},
		{chunk(&eventlog.StepStart{StepID: &st, Base: third}, ""), chunk(&eventlog.TextDelta{Delta: "unfini", Base: third}, "")},
		{chunk(&eventlog.TextDelta{Delta: "shed", Base: third}, "")},
	}
	return numbered(slices.Concat(log...)...)
}

// contentOf is the part of a session that a rollback restores, as JSON: of its runs the
// first ones, without the members that a rollback keeps.
func contentOf(t *testing.T, s *projector.Session, runs int) string {
	t.Helper()
	c := *s
	c.CreatedAt, c.UpdatedAt, c.Version, c.ResumeCount, c.Usage, c.TruncatedCalls = 0, 0, 0, 0, projector.Usage{}, nil
	c.Runs = slices.Clone(s.Runs[:runs])
	for i := range c.Runs {
		c.Runs[i].Claims = 0
	}
	return encoded(t, c)
}

// TestRollbackRestoresTheState: at every n of a log, a rollback to n leaves the content
// of fold(<= n), and the rest stays.
func TestRollbackRestoresTheState(t *testing.T) {
	records := conversation()
	now := projector.Fold(records...)
	require.Empty(t, now.Parked)
	for n := 1; n <= len(records); n++ {
		want := projector.Fold(records[:n]...)
		back := projector.Fold(next(records, rollbackTo(want, records[len(records)-1].Sequence))...)
		require.Equal(t, want.CustomState.String(), back.CustomState.String(), "byte for byte")
		back = restored(t, back)
		at := fmt.Sprintf("at %d, %s", want.Head, records[n-1].Type)
		require.Empty(t, back.Parked, at)
		require.Equal(t, contentOf(t, &want.Session, len(want.Runs)), contentOf(t, &back.Session, len(want.Runs)), at)

		require.Equal(t, now.Usage, back.Usage, at)
		require.Equal(t, now.Claim, back.Claim, at)
		require.Equal(t, now.Appends, back.Appends, at)
		require.Equal(t, now.ResumeCount, back.ResumeCount, at)
		require.Greater(t, back.Version, now.Version, at)
		require.Len(t, back.Runs, len(now.Runs), at)
		for i, run := range back.Runs {
			require.Equal(t, now.Runs[i].Claims, run.Claims, at)
			if i >= len(want.Runs) {
				require.Contains(t, []fact.RunStatus{fact.RunCompleted, fact.RunFailed, fact.RunStopped}, run.Status, at)
			}
		}
		for _, call := range []string{"c1", "c2", "c3"} {
			require.Equal(t, now.HasCall(call), back.HasCall(call), "%s: call ids are not given twice", at)
		}
		child := back.Children["child"]
		if was := want.Children["child"]; was != nil {
			require.Equal(t, contentOf(t, was, 0), contentOf(t, child, 0), at)
		} else {
			require.Equal(t, []projector.Message{}, child.Messages)
			require.Equal(t, []string{"b", "{}"}, []string{child.AgentType, child.CustomState.String()}, "a session that was not there is empty")
		}
		require.LessOrEqual(t, len(next(records, rollbackTo(want, 1<<20))[len(records)].Payload), 2000, "a marker does not hold the conversation")
	}
}

// TestRollbackAgreesWithTheEffectiveStream: the messages after a rollback are
// those of the records that are not truncated.
func TestRollbackAgreesWithTheEffectiveStream(t *testing.T) {
	records := conversation()
	for n := 1; n <= len(records); n++ {
		all := next(records, rollbackTo(projector.Fold(records[:n]...), records[len(records)-1].Sequence))
		back := projector.Fold(all...)
		var alive []eventlog.Record
		for _, r := range all {
			if !back.Dead.Covers(r) && r.Type != "truncated" {
				alive = append(alive, r)
			}
		}
		fresh := projector.Fold(alive...)
		runs := len(fresh.Runs)
		require.Equal(t, contentOf(t, &fresh.Session, runs), contentOf(t, &back.Session, runs), "at %d", records[n-1].Sequence)
	}
}

// TestRollbacksOfRollbacks: to a record before an earlier rollback, and further back.
func TestRollbacksOfRollbacks(t *testing.T) {
	records := conversation()
	head := func(r []eventlog.Record) uint64 { return r[len(r)-1].Sequence }
	for n := len(records); n > 1; n -= 3 {
		first := next(records, rollbackTo(projector.Fold(records[:n]...), head(records)))
		on := first
		for _, e := range append(opening()[1:2], step("new", 1, "anew", "c9")...) {
			on = next(on, e)
		}
		want := projector.Fold(first...)
		back := projector.Fold(next(on, rollbackTo(want, head(on)))...)
		require.Equal(t, contentOf(t, &want.Session, len(want.Runs)), contentOf(t, &back.Session, len(want.Runs)), "to a marker")

		m := n / 2
		want = projector.Fold(records[:m+1]...)
		back = projector.Fold(next(on, rollbackTo(want, head(on)))...)
		require.Equal(t, contentOf(t, &want.Session, len(want.Runs)), contentOf(t, &back.Session, len(want.Runs)), "to before it")
	}
}

// TestRollbackDoesNotRestoreTruncatedContent: if an answer was unfinished at n and has
// been truncated since, nothing of it is left to show or to truncate.
func TestRollbackDoesNotRestoreTruncatedContent(t *testing.T) {
	records := conversation()
	at := projector.Fold(records...)
	require.Equal(t, "unfinished", string(at.Turn.Step.Partial[0].Text))
	records = next(records, factOf("s", &eventlog.Truncated{
		Reason: eventlog.ResyncCrashRecovery, Ranges: at.Orphans(), AtSequence: at.Head, Base: factBase("s"),
	}))
	records = next(records, factOf("s", &fact.UserMessage{Content: "later", Base: factBase("s")}))
	back := projector.Fold(next(records, rollbackTo(at, records[len(records)-1].Sequence))...)
	require.Empty(t, back.Parked)
	require.Equal(t, len(at.Messages), len(back.Messages))
	require.Empty(t, back.Turn.Step.Partial)
	require.Empty(t, back.Orphans())
}

// TestDamagedRollbacksAreParked: a marker without a usable restore value changes nothing
// except which records are truncated.
func TestDamagedRollbacksAreParked(t *testing.T) {
	records := conversation()
	now := projector.Fold(records...)
	n := slices.IndexFunc(records, func(r eventlog.Record) bool { return r.Type == "tool_result" })
	at := projector.Fold(records[:n+1]...)
	good := rollbackTo(at, now.Head)
	damaged := func(old, new string) string {
		s := strings.Replace(string(good.Payload), old, new, 1)
		require.NotEqual(t, string(good.Payload), s, old)
		return s
	}
	whole, err := projector.RestoreAt(at)
	require.NoError(t, err)
	for name, payload := range map[string]string{
		"none":                   damaged(`"restore":`+string(whole)+`,`, ""),
		"null":                   damaged(`"restore":`+string(whole), `"restore":null`),
		"no object":              damaged(`"restore":`+string(whole), `"restore":"x"`),
		"another sequence":       damaged(`"restore":{"sequence":`+fmt.Sprint(at.Head), `"restore":{"sequence":1`),
		"a wrong type":           damaged(`"sessions":{`, `"sessions":{"x":5,`),
		"an unknown status":      damaged(`"status":"active"`, `"status":"odd"`),
		"an unknown stream":      damaged(`"streamStatus":"active"`, `"streamStatus":""`),
		"a state that is a list": damaged(`"customState":{`, `"customState":[],"x":{`),
		"no state":               damaged(`"customState":{`, `"x":{`),
		"an unknown run":         damaged(`"run":{"runId":"r1"`, `"run":{"runId":"odd"`),
		"a message too far":      damaged(`"message":`, `"message":9`),
		"results too many":       damaged(`{"toolCallId":"c1"`, `{"done":true,"toolCallId":"c1"`),
		"a negative message":     damaged(`"message":`, `"message":-`),
		"an answer ahead":        damaged(`"before":`, `"before":9`),
		"an unknown scope":       damaged(`"scope":"all"`, `"scope":"newer"`),
	} {
		bad := good
		bad.Payload = []byte(payload)
		all := next(records, bad)
		back := restored(t, projector.Fold(all...))
		require.Len(t, back.Parked, 1, name)
		require.Equal(t, all[len(all)-1].Sequence, back.Parked[0].Sequence)
		back.Dead, back.Parked, back.Head, back.Bytes, back.UpdatedAt = now.Dead, now.Parked, now.Head, now.Bytes, now.UpdatedAt
		back.Turn.Step.Partial, back.Turn.Step.Streamed = now.Turn.Step.Partial, now.Turn.Step.Streamed // truncated in any case
		require.Equal(t, encoded(t, now), encoded(t, back), name)

		for _, e := range step("later", 2, "x", "c8") { // and the fold continues
			all = next(all, e)
		}
		require.NotPanics(t, func() { projector.Fold(all...) }, name)
	}
}

// TestRollbackOfRandomLogs: in any log, a rollback to n restores fold(<= n), without the
// records that were truncated since.
func TestRollbackOfRandomLogs(t *testing.T) {
	rnd := testkit.Random(t)
	for range testkit.Times(150) {
		records := randomLog(rnd, 60)
		n := 1 + rnd.IntN(len(records)-1)
		at := projector.Fold(records[:n]...)
		kept := slices.Clone(records[:n])
		for _, r := range records[n:] {
			if f, err := r.Fact(); err == nil {
				if m, ok := f.(*eventlog.Truncated); ok && m.AfterSequence == 0 {
					kept = append(kept, r)
				} else if ok && m.AfterSequence < at.Head {
					at = nil // a rollback has gone to before n
					break
				}
			}
		}
		if at == nil {
			continue
		}
		want := projector.Fold(kept...)
		back := projector.Fold(next(records, rollbackTo(at, records[len(records)-1].Sequence))...)
		require.Equal(t, contentOf(t, &want.Session, 0), contentOf(t, &back.Session, 0))
	}
}
