package logtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/eventlog/stream"
)

// The guarantees of a stream manager, on eventlog.Streams.

// spoken is a text chunk as a writer takes it.
func spoken(agent string, step int, text string) eventlog.Chunk {
	return &eventlog.TextDelta{Delta: text, Base: eventlog.Base{AgentID: agent, AgentType: "writer", Timestamp: 1, Step: step}}
}

// say writes texts of a step to session s and returns the last one's sequence.
func say(t *testing.T, log eventlog.Log, step int, texts ...string) uint64 {
	t.Helper()
	w, err := eventlog.NewStreams(log).CreateWriter("s", "s", "writer")
	require.NoError(t, err)
	chunks := make([]eventlog.Chunk, len(texts))
	for i, text := range texts {
		chunks[i] = spoken("s", step, text)
	}
	last, err := w.Write(ctxOf(t), chunks...)
	require.NoError(t, err)
	return last
}

// reading reads step by step.
type reading struct {
	*eventlog.Reader
	pull func() (eventlog.Record, error, bool)
	stop func()
}

func attach(t *testing.T, log eventlog.Log, from uint64) *reading {
	t.Helper()
	r, err := eventlog.NewReader(ctxOf(t), log, "s", from)
	require.NoError(t, err)
	g := &reading{Reader: r}
	g.start(t)
	t.Cleanup(func() { g.stop() })
	return g
}

func (g *reading) start(t *testing.T) { g.pull, g.stop = iter.Pull2(g.Records(ctxOf(t))) }

// next reads what comes next: a text, a fact in brackets, "truncated" for the
// error of that kind, or "." where the stream is finished.
func (g *reading) next(t *testing.T) string {
	t.Helper()
	r, err, ok := g.pull()
	if !ok {
		return "."
	}
	if cut, is := errors.AsType[*eventlog.StreamTruncatedError](err); is {
		if cut.TruncatedAtStep != nil {
			return fmt.Sprintf("truncated %d at %d", *cut.TruncatedAtStep, cut.AtSequence)
		}
		return fmt.Sprintf("truncated at %d", cut.AtSequence)
	}
	require.NoError(t, err)
	if r.Kind == eventlog.KindFact {
		return "[" + r.Type + "]"
	}
	return texts(t, []eventlog.Record{r})[0]
}

func (g *reading) expect(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		require.Equal(t, w, g.next(t))
	}
}

// concurrentWriters is G1: the records of all writers have one order.
func concurrentWriters(t *testing.T, log eventlog.Log) {
	const writers, writes = 5, 12
	ctx := ctxOf(t)
	streams := eventlog.NewStreams(log)
	acked := make([][]uint64, writers)
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			agent := []string{"s", "child"}[n%2]
			w, err := streams.CreateWriter("s", agent, "writer")
			if err != nil {
				t.Error(err)
				return
			}
			for i := range writes {
				last, err := w.Write(ctx, spoken(agent, 1, fmt.Sprintf("%d:%d", n, i)), spoken(agent, 1, fmt.Sprintf("%d:%d'", n, i)))
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				acked[n] = append(acked[n], last)
			}
		})
	}
	wg.Wait()
	all := collect(t, log.Read(ctx, "s", 0, 0))
	require.Len(t, all, writers*writes*2)
	at := map[string]uint64{}
	for i, r := range all {
		if i > 0 {
			require.Greater(t, r.Sequence, all[i-1].Sequence)
		}
		at[texts(t, []eventlog.Record{r})[0]] = r.Sequence
	}
	for n := range writers {
		require.True(t, slices.IsSorted(acked[n]))
		for i, last := range acked[n] {
			require.Equal(t, last, at[fmt.Sprintf("%d:%d'", n, i)], "acked with its own sequence")
			require.Equal(t, last-1, at[fmt.Sprintf("%d:%d", n, i)], "a write is together")
		}
	}
	chunks, err := stream.CollectAll(streams.AllChunks(ctx, "s"))
	require.NoError(t, err)
	require.Len(t, chunks, len(all))
}

// attachedReaders is G2: an attached reader sees every chunk once, in order,
// from wherever it starts.
func attachedReaders(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	seqs := []uint64{0}
	for i := range 5 {
		seqs = append(seqs, say(t, log, 1, fmt.Sprint(i)))
	}
	var readers []*reading
	for _, from := range seqs {
		readers = append(readers, attach(t, log, from))
	}
	for i := 5; i < 10; i++ {
		say(t, log, 1, fmt.Sprint(i))
		for n, r := range readers {
			if n%2 == 0 { // some keep up
				r.expect(t, fmt.Sprint(n+i-5))
			}
		}
	}
	require.NoError(t, eventlog.NewStreams(log).EndStream(ctx, "s", nil))
	for n, r := range readers {
		r.expect(t, append(numbered(n+5*(1-n%2), 10), "[stream_end]", ".", ".")...)
	}
}

// terminalStates is G3: an end is for good, and after all that precedes it.
func terminalStates(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	streams := eventlog.NewStreams(log)
	require.ErrorIs(t, streams.EndStream(ctx, "s", nil), eventlog.ErrSessionNotFound)
	w, err := streams.CreateWriter("s", "s", "writer")
	require.NoError(t, err)
	_, err = w.Write(ctx, spoken("s", 1, "a"), spoken("s", 1, "b"))
	require.NoError(t, err)
	before := attach(t, log, 0)
	before.expect(t, "a")
	require.NoError(t, streams.EndStream(ctx, "s", json.RawMessage(`{"x":1}`)))

	refused := func() {
		t.Helper()
		_, err := w.Write(ctx, spoken("s", 1, "late"))
		require.ErrorIs(t, err, eventlog.ErrStreamEnded)
		_, err = w.Write(ctx, &eventlog.SubAgentEnd{
			SubAgentType: "a", SubSessionID: "s-agent-a", CallID: "c", Base: eventlog.Base{AgentID: "s", AgentType: "writer"},
		})
		require.ErrorIs(t, err, eventlog.ErrStreamEnded)
		require.ErrorIs(t, streams.EndStream(ctx, "s", nil), eventlog.ErrStreamEnded)
		require.ErrorIs(t, streams.FailStream(ctx, "s", "x"), eventlog.ErrStreamEnded)
		require.ErrorIs(t, streams.PauseStream(ctx, "s", ""), eventlog.ErrStreamEnded)
		require.ErrorIs(t, streams.ResumeStream(ctx, "s"), eventlog.ErrStreamEnded)
	}
	refused()
	before.expect(t, "b", "[stream_end]", ".")
	require.Equal(t, eventlog.StreamCompleted, before.Status())
	attach(t, log, 0).expect(t, "a", "b", "[stream_end]", ".")
	attach(t, log, before.Sequence()).expect(t, ".")
	info, err := streams.Info(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.StreamInfo{Status: eventlog.StreamCompleted, LatestSequence: before.Sequence()}, info)

	// A new turn re-activates the stream; its sequences continue.
	_, err = put(ctx, log, "s", info.LatestSequence, []eventlog.Entry{
		Fact("s", &fact.RunRequested{RunID: "run-2", Mode: fact.ModeStart, Base: base("s")}),
	})
	require.NoError(t, err)
	_, err = w.Write(ctx, spoken("s", 1, "c"))
	require.NoError(t, err)
	before.start(t)
	before.expect(t, ".")
	next, whole := attach(t, log, before.Sequence()), attach(t, log, 0)
	next.expect(t, "[run_requested]", "c")
	require.Equal(t, eventlog.StreamActive, next.Status())
	whole.expect(t, "a", "b", "[stream_end]", "[run_requested]", "c")
	require.NoError(t, streams.FailStream(ctx, "s", "broke"))
	refused()
	for _, r := range []*reading{next, whole} {
		r.expect(t, "[stream_failed]", ".")
		require.Equal(t, eventlog.StreamTerminated, r.Status())
	}
}

// truncationIsTold is G4: an attached reader that has not read to the end when
// something is truncated gets an error at its next read, once.
func truncationIsTold(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	streams := eventlog.NewStreams(log)
	clean := func(step int, session string) string {
		t.Helper()
		head, err := log.Head(ctx, session)
		require.NoError(t, err)
		m, err := streams.CleanupToStep(ctx, session, session, step, 0)
		require.NoError(t, err)
		require.Equal(t, head, m.AtSequence)
		return fmt.Sprintf("truncated %d at %d", step, head)
	}
	say(t, log, 1, "a", "b")
	mid := say(t, log, 2, "c")
	say(t, log, 3, "d")
	fresh, some, resumed, all := attach(t, log, 0), attach(t, log, 0), attach(t, log, mid), attach(t, log, 0)
	some.expect(t, "a")
	all.expect(t, "a", "b", "c", "d")

	told := clean(2, "s")
	fresh.expect(t, told, "a", "b", "c", "[truncated]")
	some.expect(t, told, "b", "c", "[truncated]")
	resumed.expect(t, told, "[truncated]")
	all.expect(t, "[truncated]")
	attach(t, log, 0).expect(t, "a", "b", "c", "[truncated]")

	// If nothing is truncated, there is no error.
	say(t, log, 2, "e")
	m, err := streams.CleanupToStep(ctx, "s", "s", 2, 0)
	require.NoError(t, err)
	require.Nil(t, m)
	all.expect(t, "e")

	// Several markers before the next read are one error, a later one is another.
	// A reader that stops at the error continues after it.
	say(t, log, 4, "f")
	say(t, log, 3, "g")
	late := attach(t, log, 0)
	late.expect(t, "a")
	clean(3, "s")
	told = clean(2, "s")
	late.expect(t, told)
	told = clean(1, "s") // while the error is being looked at
	late.expect(t, told)
	late.stop()
	late.start(t)
	late.expect(t, "b", "[truncated]", "[truncated]", "[truncated]", "[truncated]")

	// A rollback is an error, too.
	back := say(t, log, 1, "h")
	say(t, log, 1, "i", "j")
	late.expect(t, "h", "i")
	head, err := log.Head(ctx, "s")
	require.NoError(t, err)
	_, err = eventlog.Rollback(ctx, log, "s", back, eventlog.RollbackOptions{Restore: json.RawMessage(`{}`)})
	require.NoError(t, err)
	late.expect(t, fmt.Sprintf("truncated at %d", head), "[run_claimed]", "[truncated]")
	say(t, log, 1, "k")
	late.expect(t, "k")
	got, err := stream.CollectText(streams.AllChunks(ctx, "s"))
	require.NoError(t, err)
	require.Equal(t, "abhk", got)
}

// rolledBackEnds: a rollback takes back an end, and the new turn that had taken
// back an end.
func rolledBackEnds(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	streams := eventlog.NewStreams(log)
	back := func(n uint64) {
		t.Helper()
		_, err := eventlog.Rollback(ctx, log, "s", n, eventlog.RollbackOptions{Restore: json.RawMessage(`{}`)})
		require.NoError(t, err)
	}
	first := say(t, log, 1, "a")
	require.NoError(t, streams.EndStream(ctx, "s", nil))
	back(first)
	r := attach(t, log, 0)
	r.expect(t, "a", "[run_claimed]", "[truncated]")
	require.Equal(t, eventlog.StreamActive, r.Status())
	say(t, log, 1, "b")
	require.NoError(t, streams.EndStream(ctx, "s", nil))
	r.expect(t, "b", "[stream_end]", ".")

	ended := r.Sequence()
	_, err := put(ctx, log, "s", ended, []eventlog.Entry{
		Fact("s", &fact.RunRequested{RunID: "run-2", Mode: fact.ModeStart, Base: base("s")}),
	})
	require.NoError(t, err)
	say(t, log, 1, "c")
	attached := attach(t, log, ended)
	attached.expect(t, "[run_requested]", "c")
	back(ended)
	attached.expect(t, "[run_claimed]", "[truncated]", ".")
	require.Equal(t, eventlog.StreamCompleted, attached.Status())
	attach(t, log, 0).expect(t, "a", "[run_claimed]", "[truncated]", "b", "[stream_end]", "[run_claimed]", "[truncated]", ".")
	attach(t, log, attached.Sequence()).expect(t, ".")
	w, err := streams.CreateWriter("s", "s", "writer")
	require.NoError(t, err)
	_, err = w.Write(ctx, spoken("s", 1, "late"))
	require.ErrorIs(t, err, eventlog.ErrStreamEnded)
}

// slowReaders is G5: a reader that does not read blocks nobody.
func slowReaders(t *testing.T, log eventlog.Log) {
	const records = 1000
	say(t, log, 1, "first")
	slow, quick, idle := attach(t, log, 0), attach(t, log, 0), attach(t, log, 0)
	slow.expect(t, "first") // and stands still from here on
	for i := 0; i < records; i += 100 {
		say(t, log, 1, numbered(i, i+100)...)
	}
	want := numbered(0, records)
	quick.expect(t, "first")
	quick.expect(t, want...)
	slow.expect(t, want...)
	idle.expect(t, "first")
	idle.expect(t, want[:10]...)
}

// pausedStreams is G6: a pause ends no reader and refuses no chunk.
func pausedStreams(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	streams := eventlog.NewStreams(log)
	say(t, log, 1, "a")
	r := attach(t, log, 0)
	r.expect(t, "a")
	require.NoError(t, streams.PauseStream(ctx, "s", "approval"))
	r.expect(t, "[stream_paused]")
	require.Equal(t, eventlog.StreamActive, r.Status(), "to a reader a pause is no state")
	info, err := streams.Info(ctx, "s")
	require.NoError(t, err)
	require.Equal(t, eventlog.StreamWaiting, info.Status)
	say(t, log, 1, "b")
	r.expect(t, "b")
	require.NoError(t, streams.ResumeStream(ctx, "s"))
	fresh := attach(t, log, 0)
	fresh.expect(t, "a", "[stream_paused]", "b", "[stream_resumed]")
	require.NoError(t, streams.PauseStream(ctx, "s", ""))
	require.NoError(t, streams.EndStream(ctx, "s", nil))
	r.expect(t, "[stream_resumed]", "[stream_paused]", "[stream_end]", ".")
	fresh.expect(t, "[stream_paused]", "[stream_end]", ".")
}

// readersEnd: a reader's context ends it with its cause, and a wrong
// cursor is an error before anything is read.
func readersEnd(t *testing.T, log eventlog.Log) {
	_, err := eventlog.NewReader(ctxOf(t), log, "s", 0)
	require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
	head := say(t, log, 1, "a", "b")
	var ahead *eventlog.CursorAheadError
	_, err = eventlog.NewReader(ctxOf(t), log, "s", head+1)
	require.ErrorAs(t, err, &ahead)

	r, err := eventlog.NewReader(ctxOf(t), log, "s", 0)
	require.NoError(t, err)
	stop := errors.New("stop")
	ctx, cancel := context.WithCancelCause(ctxOf(t))
	defer cancel(nil)
	for c, err := range r.Chunks(ctx) {
		if err != nil {
			require.ErrorIs(t, err, stop)
			break
		}
		if c.Sequence == head {
			cancel(stop)
		}
	}
	require.Equal(t, head, r.Sequence())
	more := say(t, log, 1, "c")
	for c, err := range r.Chunks(ctxOf(t)) { // it continues where it stopped
		require.NoError(t, err)
		require.Equal(t, more, c.Sequence)
		break
	}
}
