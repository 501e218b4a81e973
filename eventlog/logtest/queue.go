package logtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// Gate is a log whose appends can be held up. It counts what comes through.
type Gate struct {
	eventlog.Log

	mu    sync.Mutex
	shut  chan struct{} // nil: open
	came  chan struct{}
	sizes []int
}

// Shut holds appends up from now on; those that it held up before come through.
// What it returns is received from when one has come.
func (g *Gate) Shut() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut != nil {
		close(g.shut)
	}
	g.shut, g.came = make(chan struct{}), make(chan struct{}, 1)
	return g.came
}

// Open lets all appends through.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.shut)
	g.shut = nil
}

// Sizes returns how many records each append had that came through.
func (g *Gate) Sizes() []int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]int(nil), g.sizes...)
}

// Append implements eventlog.Log.
func (g *Gate) Append(ctx context.Context, session string, expected uint64, entries []eventlog.Entry) (uint64, error) {
	g.mu.Lock()
	shut, came := g.shut, g.came
	g.mu.Unlock()
	if shut != nil {
		select {
		case came <- struct{}{}:
		default:
		}
		select {
		case <-shut:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	g.mu.Lock()
	g.sizes = append(g.sizes, len(entries))
	g.mu.Unlock()
	return g.Log.Append(ctx, session, expected, entries)
}

func gathers(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	gate := &Gate{Log: log}
	w := claim(t, gate, "s", "w")
	came := gate.Shut()
	require.NoError(t, w.Write(ctx, Text("s", "first")))
	<-came
	var want strings.Builder
	for i := range 300 {
		require.NoError(t, w.Write(ctx, Text("s", fmt.Sprint(i, " "))))
		fmt.Fprint(&want, i, " ")
	}
	require.NoError(t, w.Write(ctx, custom("x"), custom("y")))
	require.NoError(t, w.Write(ctx, Text("s", "a")))
	require.NoError(t, w.Write(ctx, Text("s", "b"), custom("z")))
	gate.Open()
	require.NoError(t, w.Append(ctx, Text("s", "end")), "after all writes")
	require.Equal(t, []int{1, 1}, gate.Sizes()[:2], "the claim, and what was under way")
	requireOwn(t, log, w, "first", want.String(), "ab", "end")

	var types []string
	for _, r := range collect(t, log.Read(ctx, "s", 0, 0)) {
		types = append(types, r.Type)
	}
	require.Equal(t, []string{
		"run_claimed", "text_delta", "text_delta", "custom", "custom", "text_delta", "custom", "text_delta",
	}, types)
	sum := 0
	for _, n := range gate.Sizes() {
		sum += n
	}
	require.Equal(t, len(types), sum)
	if log.Info().GatherFrom <= 2 { // else so few go one after the other
		require.LessOrEqual(t, len(gate.Sizes()), 4, "what waits goes together")
	}

	before := len(gate.Sizes())
	came = gate.Shut()
	require.NoError(t, w.Write(ctx, custom("first")))
	<-came
	const many = 300
	require.Less(t, log.Info().GatherFrom, many)
	for range many {
		require.NoError(t, w.Write(ctx, custom("x")))
	}
	gate.Open()
	require.NoError(t, w.Flush(ctx))
	require.Equal(t, []int{1, many}, gate.Sizes()[before:], "what waits goes together")
}

// custom returns a chunk that is never merged.
func custom(name string) eventlog.Entry {
	e, err := eventlog.NewChunk(&eventlog.CustomEvent{EventName: name, Data: []byte("null"), Base: eventlog.Base{
		AgentID: "s", AgentType: "writer", Timestamp: 1, Step: 1,
	}}, eventlog.Labels{Run: "run-1"})
	if err != nil {
		panic(err)
	}
	return e
}

// refusals: the stream's end refuses what must not follow it, and nothing else,
// independent of the writer and the time.
func refusals(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	gate := &Gate{Log: log}
	w := claim(t, gate, "s", "w")
	message := Fact("s", &fact.UserMessage{Content: "hi", Base: base("s")})
	request := Fact("s", &fact.RunRequested{RunID: "run-2", Mode: fact.ModeStart, Base: base("s")})

	came := gate.Shut()
	require.NoError(t, w.Write(ctx, Text("s", "a")))
	<-came
	appended := make(chan error, 3)
	for _, e := range []eventlog.Entry{message, request} {
		go func() { appended <- w.Append(ctx, e) }()
	}
	head, err := log.Head(ctx, "s")
	require.NoError(t, err)
	_, err = log.Append(ctx, "s", head, []eventlog.Entry{
		Fact("s", &fact.StreamEnd{StreamID: "s", Timestamp: 1}), // by another writer, between two tries
	})
	require.NoError(t, err)
	gate.Open()
	require.NoError(t, <-appended)
	require.NoError(t, <-appended)
	require.ErrorIs(t, w.Flush(ctx), eventlog.ErrStreamEnded, "what became of a")
	require.NoError(t, w.Flush(ctx), "it was reported")
	require.NoError(t, w.Append(ctx, Text("s", "b")), "the new turn")
	requireOwn(t, log, w, "b")
	ordinal := uint64(0)
	for _, r := range *w.seen {
		if r.Writer == "w" {
			ordinal++
			require.Equal(t, ordinal, r.Ordinal, "ordinals close up")
		}
	}
	require.EqualValues(t, 4, ordinal)
}

// mergedValues: what a writer's observer gets of a merged record is what everybody
// reads of it, and the entries that it was made of stay as they are.
func mergedValues(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	gate := &Gate{Log: log}
	w := claim(t, gate, "s", "w")
	came := gate.Shut()
	require.NoError(t, w.Write(ctx, custom("first")))
	<-came
	given := []*eventlog.TextDelta{}
	var entries []eventlog.Entry
	for _, text := range []string{"a\n", "\"", "\xe2\x82", "\xac<\u2028", ""} {
		c := &eventlog.TextDelta{Delta: text, Base: eventlog.Base{AgentID: "s", AgentType: "writer", Timestamp: 1, Step: 1}}
		e, err := eventlog.NewChunk(c, eventlog.Labels{})
		require.NoError(t, err)
		given, entries = append(given, c), append(entries, e)
		require.NoError(t, w.Write(ctx, e))
	}
	gate.Open()
	require.NoError(t, w.Flush(ctx))

	stored := collect(t, log.Read(ctx, "s", 0, 0))
	require.Equal(t, entriesOf(stored), entriesOf(*w.seen))
	require.Len(t, stored, 3, "the claim, what was under way, and what was merged")
	want, err := eventlog.DecodeChunk(stored[2].Payload)
	require.NoError(t, err)
	require.Equal(t, "a\n\"\ufffd\ufffd\ufffd<\u2028", want.(*eventlog.TextDelta).Delta)
	for _, r := range []eventlog.Record{stored[2], (*w.seen)[2]} {
		got, err := r.Chunk()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for i, e := range entries {
		want, err := eventlog.DecodeChunk(e.Payload)
		require.NoError(t, err)
		got, err := e.Chunk()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NotEqual(t, stored[2].Payload, e.Payload)
		require.Len(t, given[i].Delta, []int{2, 1, 2, 5, 0}[i], "the caller's is the caller's")
	}
}
