package logtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// story appends entries to session s and returns their sequences.
func story(t *testing.T, log eventlog.Log, entries ...eventlog.Entry) []uint64 {
	t.Helper()
	head, err := log.Head(ctxOf(t), "s")
	if err != nil {
		require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	}
	last, err := put(ctxOf(t), log, "s", head, entries)
	require.NoError(t, err)
	seqs := make([]uint64, len(entries))
	for i := range seqs {
		seqs[i] = last + 1 + uint64(i) - uint64(len(seqs))
	}
	return seqs
}

// textOf is a text of a step, of the run unless it is empty, within a call
// unless that is empty.
func textOf(agent string, step int, run, call, text string) eventlog.Entry {
	e, err := eventlog.NewChunk(spoken(agent, step, text), eventlog.Labels{Run: run, Call: call})
	if err != nil {
		panic(err)
	}
	return e
}

func requested(run string) eventlog.Entry {
	return Fact("s", &fact.RunRequested{RunID: run, Mode: fact.ModeStart, Base: base("s")})
}

// left returns the texts that are not truncated.
func left(t *testing.T, log eventlog.Log) []string {
	t.Helper()
	return texts(t, collect(t, eventlog.Effective(ctxOf(t), log, "s", 0, 0)))
}

// cleanupByStep: step numbers restart in each turn, so a clean-up by step alone would also
// truncate chunks of earlier turns. A clean-up is therefore limited to one run.
func cleanupByStep(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	text := func(run string, step int, text string) eventlog.Entry { return textOf("s", step, run, "", text) }
	story(t, log, requested("run-1"))
	startSequence := story(t, log, text("run-1", 1, "1.1"), text("run-1", 2, "1.2"), text("run-1", 3, "1.3"),
		Fact("s", &fact.StreamEnd{StreamID: "s", Timestamp: 1}))[3]
	story(t, log, requested("run-2"), text("run-2", 1, "2.1"),
		Fact("s", &fact.StreamPaused{Reason: "client_tool", Base: base("s")}))
	all := []string{"1.1", "1.2", "1.3", "2.1"}

	// A client tool has answered and the turn is resumed at its checkpoint of
	// step 1: there is nothing to clean up, and no marker.
	head, err := log.Head(ctx, "s")
	require.NoError(t, err)
	m, err := eventlog.CleanupToStep(ctx, log, "s", "s", 1, startSequence)
	require.NoError(t, err)
	require.Nil(t, m)
	after, err := log.Head(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, head, after, "no marker")
	require.Equal(t, all, left(t, log))

	// A step that crashed is truncated, and nothing else.
	at := story(t, log, text("run-2", 2, "orphan"), text("run-2", 2, "orphan too"))
	m, err = eventlog.CleanupToStep(ctx, log, "s", "s", 1, startSequence)
	require.NoError(t, err)
	step := 1
	require.Equal(t, &eventlog.Truncated{
		Reason: eventlog.ResyncCrashRecovery, AtSequence: at[1], TruncatedAtStep: &step, MinSequence: startSequence,
		Ranges: []eventlog.Range{{AgentID: "s", From: at[0], To: at[1], Scope: eventlog.ScopeContent}},
		Base:   fact.Base{SessionID: "s", Timestamp: m.Timestamp},
	}, m)
	require.Equal(t, all, left(t, log))
	m, err = eventlog.CleanupToStep(ctx, log, "s", "s", 1, startSequence)
	require.NoError(t, err)
	require.Nil(t, m, "truncated records are not truncated again")

	// Without the floor the first turn's later steps would go: what a rollback
	// wants, and a resume must not.
	m, err = eventlog.CleanupToStep(ctx, log, "s", "s", 1, 0)
	require.NoError(t, err)
	require.Equal(t, eventlog.ResyncRollback, m.Reason)
	require.Equal(t, []string{"1.1", "2.1"}, left(t, log))
	require.Len(t, texts(t, collect(t, log.Read(ctx, "s", 0, 0))), 6, "a raw read shows everything")
}

// cleanupOfEveryKind: chunks of later steps are truncated, of whatever type.
func cleanupOfEveryKind(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	chunk := func(c eventlog.Chunk) eventlog.Entry {
		e, err := eventlog.NewChunk(c, eventlog.Labels{Run: "run-1"})
		require.NoError(t, err)
		return e
	}
	at := func(step int) eventlog.Base {
		return eventlog.Base{AgentID: "s", AgentType: "a", Timestamp: 1, Step: step}
	}
	of := func(step int) []eventlog.Entry {
		return []eventlog.Entry{
			textOf("s", step, "run-1", "", "text"),
			chunk(&eventlog.StepCommitted{RunID: "run-1", StepID: "st", CheckpointID: "cp", Base: at(step)}),
			chunk(&eventlog.CheckpointCreated{RunID: "run-1", CheckpointID: "cp", StepCount: step, Base: at(step)}),
			chunk(&eventlog.Error{Error: "no", Base: at(step)}),
		}
	}
	story(t, log, append(of(1), append(of(2), of(3)...)...)...)
	_, err := eventlog.CleanupToStep(ctx, log, "s", "s", 1, 0)
	require.NoError(t, err)
	chunks := 0
	for r, err := range eventlog.Effective(ctx, log, "s", 0, 0) {
		require.NoError(t, err)
		if r.Kind == eventlog.KindChunk {
			c, err := r.Chunk()
			require.NoError(t, err)
			require.Equal(t, 1, eventlog.BaseOf(c).Step, c.Type())
			chunks++
		}
	}
	require.Equal(t, 4, chunks)
}

// cleanupRanges: of all that is in between only the agent's own later steps
// are truncated, of all writers, in calls and outside.
func cleanupRanges(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	seqs := story(t, log,
		textOf("s", 1, "run-1", "", "keep 1"), textOf("s", 2, "run-1", "", "x"), textOf("child", 2, "run-1", "", "child"),
		textOf("s", 2, "", "", "x foreign"), textOf("s", 2, "run-1", "c1", "x call 1"), textOf("s", 1, "run-1", "c2", "keep call 2"),
		textOf("s", 3, "run-1", "c2", "x call 2"), textOf("s", 1, "", "", "keep 2"), textOf("s", 2, "run-1", "", "x again"),
		textOf("s", 1, "run-1", "c2", "keep call 2 again"), textOf("s", 2, "run-1", "c1", "x call 1 again"),
	)
	cp, err := eventlog.NewChunk(&eventlog.StepCommitted{RunID: "run-1", StepID: "st", CheckpointID: "cp", Base: eventlog.Base{
		AgentID: "s", AgentType: "writer", Step: 2,
	}}, eventlog.Labels{Run: "run-1"})
	require.NoError(t, err)
	alien := eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "alien", Agent: "s"}, Payload: []byte(`{"type":5}`)}
	more := story(t, log, cp, alien, Fact("s", &fact.UserMessage{Content: "facts have no step", Base: base("s")}))
	m, err := eventlog.CleanupToStep(ctx, log, "s", "s", 1, seqs[0])
	require.NoError(t, err)
	const scope = eventlog.ScopeContent
	require.Equal(t, []eventlog.Range{
		{AgentID: "s", From: seqs[1], To: seqs[3], Scope: scope},
		{AgentID: "s", CallID: "c1", From: seqs[4], To: seqs[10], Scope: scope},
		{AgentID: "s", CallID: "c2", From: seqs[6], To: seqs[6], Scope: scope},
		{AgentID: "s", From: seqs[8], To: more[0], Scope: eventlog.ScopeChunks},
	}, m.Ranges)
	var kept []string
	for _, r := range collect(t, eventlog.Effective(ctx, log, "s", 0, 0)) {
		if r.Type == "text_delta" {
			kept = append(kept, texts(t, []eventlog.Record{r})...)
		} else {
			kept = append(kept, r.Type)
		}
	}
	require.Equal(t, []string{
		"keep 1", "child", "keep call 2", "keep 2", "keep call 2 again", "alien", "user_message", "truncated",
	}, kept)

	_, err = eventlog.CleanupToStep(ctx, log, "nobody", "s", 1, 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	var ahead *eventlog.CursorAheadError
	_, err = eventlog.CleanupToStep(ctx, log, "s", "s", 1, 1<<40)
	require.ErrorAs(t, err, &ahead)
	var invalid *eventlog.ValidationError
	_, err = eventlog.CleanupToStep(ctx, log, "s", "s", -1, 0)
	require.ErrorAs(t, err, &invalid)
	m, err = eventlog.CleanupToStep(ctx, log, "s", "nobody", 0, 0)
	require.NoError(t, err)
	require.Nil(t, m)
}

// crowded is a log where another writer is quicker, a number of times.
type crowded struct {
	eventlog.Log
	quicker []func()
}

func (c *crowded) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	if len(c.quicker) > 0 {
		first := c.quicker[0]
		c.quicker = c.quicker[1:]
		first()
	}
	return c.Log.Append(ctx, session, expected, entries)
}

func resolvedAgain(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	first := story(t, log, textOf("s", 1, "run-1", "", "a"), textOf("s", 2, "run-1", "", "x"))
	last := uint64(0)
	busy := &crowded{Log: log, quicker: []func(){
		func() { story(t, log, textOf("s", 1, "run-1", "", "b")) },
		func() { last = story(t, log, textOf("s", 2, "run-1", "", "y"))[0] },
	}}
	m, err := eventlog.CleanupToStep(ctx, busy, "s", "s", 1, 0)
	require.NoError(t, err)
	require.Equal(t, last, m.AtSequence, "the head after which it was appended")
	require.Equal(t, []eventlog.Range{
		{AgentID: "s", From: first[1], To: first[1], Scope: eventlog.ScopeContent},
		{AgentID: "s", From: last, To: last, Scope: eventlog.ScopeContent},
	}, m.Ranges)
	require.Equal(t, []string{"a", "b"}, left(t, log))

	// Another writer may have truncated it all.
	story(t, log, textOf("s", 2, "run-1", "", "z"))
	busy.quicker = []func(){func() {
		_, err := eventlog.CleanupToStep(ctx, log, "s", "s", 1, 0)
		require.NoError(t, err)
	}}
	m, err = eventlog.CleanupToStep(ctx, busy, "s", "s", 1, 0)
	require.NoError(t, err)
	require.Nil(t, m)

	busy.quicker = []func(){func() { last = story(t, log, textOf("child", 1, "run-1", "", "late"))[0] }}
	m, err = eventlog.Rollback(ctx, busy, "s", first[0], eventlog.RollbackOptions{Restore: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.Equal(t, last, m.AtSequence)
	require.Equal(t, []string{"a"}, left(t, log))

	stopped, cancel := context.WithCancelCause(ctx)
	cancel(context.Canceled)
	story(t, log, textOf("s", 2, "run-1", "", "z"))
	_, err = eventlog.CleanupToStep(stopped, log, "s", "s", 1, 0)
	require.ErrorIs(t, err, context.Canceled)
}

func rollback(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	story(t, log, Fact("s", &fact.SessionCreated{AgentType: "writer", Base: base("s")}))
	n := story(t, log, requested("run-1"), textOf("s", 1, "run-1", "", "a"))[1]
	behind := story(t, log,
		textOf("s", 1, "run-1", "", "x"), textOf("s", 1, "run-1", "c", "x in a call"), textOf("s", 1, "", "", "x foreign"),
		Fact("child", &fact.SessionCreated{AgentType: "writer", Base: base("child")}), textOf("child", 1, "run-1", "", "x of a child"),
		Fact("s", &fact.UserMessage{Content: "x", Base: base("s")}), Fact("s", &fact.StreamEnd{StreamID: "s", Timestamp: 1}),
		eventlog.Entry{
			Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "newer", Agent: "s"}, Payload: []byte(`{"type":"newer"}`),
		},
	)
	head := behind[len(behind)-1]
	restore := json.RawMessage(`{"kept":"as it is"}`)
	m, err := eventlog.Rollback(ctx, log, "s", n, eventlog.RollbackOptions{Restore: restore, Then: then(Text("s", "b"))})
	require.NoError(t, err)
	require.Equal(t, &eventlog.Truncated{
		Reason: eventlog.ResyncRollback, AtSequence: head, AfterSequence: n, Restore: restore,
		Ranges: []eventlog.Range{
			{AgentID: "s", From: n + 1, To: head, Scope: eventlog.ScopeAll},
			{AgentID: "child", From: n + 1, To: head, Scope: eventlog.ScopeAll},
		},
		Base: fact.Base{SessionID: "s", Timestamp: m.Timestamp},
	}, m)

	var types []string
	highest := head
	for _, r := range collect(t, eventlog.Effective(ctx, log, "s", n, 0)) {
		types = append(types, r.Type)
		if len(types) > 2 { // the first two were there before
			require.Greater(t, r.Sequence, highest, "a sequence is never used again")
			highest = r.Sequence
		}
	}
	require.Equal(t, []string{"session_created", "newer", "run_claimed", "truncated", "text_delta"}, types)
	require.Equal(t, []string{"a", "b"}, left(t, log))
	require.Equal(t, []string{"a", "x", "x in a call", "x foreign", "x of a child"},
		texts(t, collect(t, eventlog.Effective(ctx, log, "s", 0, head))), "what was true before")

	// Nothing that can die is after the head, nor after a marker.
	for _, at := range []uint64{highest, highest - 1} {
		m, err = eventlog.Rollback(ctx, log, "s", at, eventlog.RollbackOptions{Restore: restore})
		require.NoError(t, err)
		require.Equal(t, at == highest, m == nil)
	}
	now, err := log.Head(ctx, "s")
	require.NoError(t, err)
	m, err = eventlog.Rollback(ctx, log, "s", now, eventlog.RollbackOptions{Restore: restore, Then: then(Text("s", "c"))})
	require.NoError(t, err)
	require.Nil(t, m)
	m, err = eventlog.Rollback(ctx, log, "s", n, eventlog.RollbackOptions{Restore: restore})
	require.NoError(t, err)
	require.Nil(t, m, "truncated records are not truncated again")
	again, err := log.Head(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, now, again)
	require.Equal(t, []string{"a"}, left(t, log))
}

func rollbackRefusals(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	back := func(session string, n uint64) error {
		_, err := eventlog.Rollback(ctx, log, session, n, eventlog.RollbackOptions{Restore: json.RawMessage(`{}`)})
		return err
	}
	require.ErrorIs(t, back("s", 1), eventlog.ErrSessionNotFound)
	one := append1(t, log, "s", 0, "a")
	append1(t, log, "other", 0, "not ours")
	last := append1(t, log, "s", one, "b", "c", "d")
	head, err := log.Head(ctx, "s")
	require.NoError(t, err)

	var ahead *eventlog.CursorAheadError
	require.ErrorAs(t, back("s", head+1), &ahead)
	require.Equal(t, head, ahead.Head)
	var invalid *eventlog.ValidationError
	for _, n := range []uint64{0, one + 1} {
		require.ErrorAs(t, back("s", n), &invalid, "%d is no record of the session", n)
	}
	for _, restore := range []json.RawMessage{nil, json.RawMessage(`[]`), json.RawMessage(`{`)} {
		_, err := eventlog.Rollback(ctx, log, "s", one, eventlog.RollbackOptions{Restore: restore})
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, "restore", invalid.Field)
	}
	huge := json.RawMessage(`{"x":"` + strings.Repeat("x", eventlog.MaxSessionID) + `"}`)
	for len(huge) <= log.Info().MaxRecordBytes {
		huge = json.RawMessage(fmt.Sprintf(`{"x":%s,"y":%s}`, huge, huge))
	}
	_, err = eventlog.Rollback(ctx, log, "s", one, eventlog.RollbackOptions{Restore: huge})
	require.ErrorIs(t, err, eventlog.ErrTooLarge)
	require.Len(t, collect(t, log.Read(ctx, "s", 0, 0)), 4, "a refusal leaves nothing")

	require.NoError(t, back("s", last-1))
	now, err := log.Head(ctx, "s")
	require.NoError(t, err)
	append1(t, log, "s", now, "e")
	for n := last; n < now; n++ {
		require.ErrorAs(t, back("s", n), &invalid, "%d was rolled back", n)
	}
	require.NoError(t, back("s", now), "the marker itself can be gone back to")
	require.NoError(t, back("s", one))
	require.Equal(t, []string{"a"}, left(t, log))
}

// rollbackFences: a run that knows nothing of the rollback would write on in a
// conversation that is gone.
func rollbackFences(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	w := claim(t, log, "s", "w")
	require.NoError(t, w.Append(ctx, Text("s", "a"), Text("s", "b")))
	n := (*w.seen)[1].Sequence
	idle := unclaimed(t, log, "s", "idle")
	_, err := eventlog.Rollback(ctx, log, "s", n, eventlog.RollbackOptions{Restore: json.RawMessage(`{}`)})
	require.NoError(t, err)
	require.ErrorIs(t, w.Append(ctx, Text("s", "late")), eventlog.ErrSuperseded)
	require.ErrorIs(t, idle.Claim(ctx, &fact.RunClaimed{RunID: "run-1", Node: "idle", Base: base("s")}), eventlog.ErrSuperseded)
	next := claim(t, log, "s", "next")
	require.NoError(t, next.Append(ctx, Text("s", "c")))
	require.Equal(t, []string{"a", "c"}, left(t, log))
}

// effectiveAtAnySequence compares the effective stream at every sequence with
// what the markers up to there say, one record at a time.
func effectiveAtAnySequence(t *testing.T, log eventlog.Log) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	oneOf := func(s ...string) string { return s[rnd.IntN(len(s))] }
	var records []eventlog.Record
	for i := range 60 {
		var e eventlog.Entry
		switch agent := oneOf("s", "s", "child"); rnd.IntN(8) {
		case 0:
			e = Fact(agent, &fact.UserMessage{Content: fmt.Sprint(i), Base: base(agent)})
		case 1:
			e = Fact(agent, &fact.RunClaimed{RunID: "r", Base: base(agent)})
		case 2:
			from := uint64(1)
			if len(records) > 0 {
				from = records[rnd.IntN(len(records))].Sequence
			}
			scope := eventlog.Scope(oneOf("", "content", "all"))
			g := eventlog.Range{AgentID: agent, From: from, To: from + rnd.Uint64N(20), Scope: scope}
			if scope != eventlog.ScopeAll {
				g.CallID = oneOf("", "c1")
			}
			e = Fact("s", &eventlog.Truncated{Reason: eventlog.ResyncRetry, Ranges: []eventlog.Range{g}, Base: base("s")})
		default:
			e = textOf(agent, 1, oneOf("", "run-1"), oneOf("", "c1", "c2"), fmt.Sprint(i))
		}
		seq := story(t, log, e)[0]
		records = append(records, eventlog.Record{Sequence: seq, Entry: e})
		if rnd.IntN(4) == 0 {
			append1(t, log, fmt.Sprint("noise", i), 0, "n")
		}
	}

	dies := func(e eventlog.Entry, g eventlog.Range) bool {
		if e.Agent != g.AgentID || e.Type == "run_claimed" || e.Type == "truncated" {
			return false
		}
		if g.Scope == "all" {
			return true
		}
		return e.Type == "text_delta" && e.Call == g.CallID && (g.Scope == "content" || e.Run != "")
	}
	for n, upTo := range records {
		var want []string
		for _, r := range records[:n+1] {
			dead := false
			for _, m := range records[:n+1] {
				if m.Type != "truncated" || m.Sequence <= r.Sequence {
					continue
				}
				f, err := m.Fact()
				require.NoError(t, err)
				g := f.(*eventlog.Truncated).Ranges[0]
				dead = dead || g.From <= r.Sequence && r.Sequence <= g.To && dies(r.Entry, g)
			}
			if !dead {
				want = append(want, fmt.Sprint(r.Sequence))
			}
		}
		var got []string
		for _, r := range collect(t, eventlog.Effective(ctxOf(t), log, "s", 0, upTo.Sequence)) {
			got = append(got, fmt.Sprint(r.Sequence))
		}
		require.Equal(t, want, got, "at %d", upTo.Sequence)
	}
}

func then(entries ...eventlog.Entry) func(uint64) ([]eventlog.Entry, error) {
	return func(uint64) ([]eventlog.Entry, error) { return entries, nil }
}
