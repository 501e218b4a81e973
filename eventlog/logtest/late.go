package logtest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// requireOwn checks what is in the log, and that the writer has observed just
// that.
func requireOwn(t *testing.T, log eventlog.Log, w holder, want ...string) {
	t.Helper()
	all := collect(t, log.Read(ctxOf(t), "s", 0, 0))
	require.Equal(t, want, texts(t, all))
	require.Equal(t, entriesOf(all), entriesOf(*w.seen), "everything is observed, once and in order")
}

func duplicated(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	faulty.Next(Duplicate)
	w := claim(t, faulty, "s", "w")
	faulty.Next(Duplicate, Duplicate)
	require.NoError(t, w.Append(ctx, Text("s", "a"), Text("s", "b")))
	require.NoError(t, w.Write(ctx, Text("s", "c")))
	require.NoError(t, w.Flush(ctx))
	requireOwn(t, log, w, "a", "b", "c")
}

// frozen: what comes while the outcome of an append is unknown does not become
// part of it.
func frozen(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	w := claim(t, faulty, "s", "w")
	for i, fault := range []Fault{LostAnswer, LostRequest, Delay, Reordered, Duplicate} {
		faulty.OnFault = func() { require.NoError(t, w.Write(ctx, Text("s", fmt.Sprint(i, "b;")))) }
		faulty.Next(fault)
		require.NoError(t, w.Write(ctx, Text("s", fmt.Sprint(i, "a;"))))
		require.NoError(t, w.Flush(ctx))
		require.NoError(t, w.Flush(ctx))
	}
	requireOwn(t, log, w, "0a;", "0b;", "1a;", "1b;", "2a;", "2b;", "3a;", "3b;", "4a;", "4b;")
}

func delayed(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	w := claim(t, faulty, "s", "w")

	faulty.Next(Delay) // its retry is made; it arrives after the next append
	require.NoError(t, w.Append(ctx, Text("s", "a"), Text("s", "b")))
	require.NoError(t, w.Append(ctx, Text("s", "c")))
	require.Zero(t, faulty.Release(ctx), "it has arrived")

	faulty.OnFault = func() { require.Equal(t, 1, faulty.Release(context.Background())) }
	faulty.Next(Delay) // it arrives when the writer has given it up, before the retry
	require.NoError(t, w.Append(ctx, Text("s", "d"), Text("s", "e")))
	faulty.OnFault = nil

	faulty.Next(Delay) // it arrives when its writer has been superseded
	stopping, cancel := context.WithCancel(ctx)
	faulty.OnFault = cancel
	require.ErrorIs(t, w.Append(stopping, Text("s", "x")), eventlog.ErrOutcomeUnknown)
	next := claim(t, log, "s", "next")
	require.Zero(t, faulty.Release(ctx))
	require.NoError(t, next.Append(ctx, Text("s", "f")))
	require.ErrorIs(t, w.Append(ctx, Text("s", "x")), eventlog.ErrWriterBroken)
	require.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

func reordered(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	faulty.Next(Reordered)
	w := claim(t, faulty, "s", "w")
	for i := range 3 {
		faulty.Next(Reordered)
		require.NoError(t, w.Append(ctx, Text("s", fmt.Sprint(i)), Text("s", fmt.Sprint(i, "b"))))
		require.Zero(t, faulty.Release(ctx), "it has arrived after its retry")
	}
	faulty.Next(Reordered, Reordered, LostAnswer)
	require.NoError(t, w.Append(ctx, Text("s", "3")))
	requireOwn(t, log, w, "0", "0b", "1", "1b", "2", "2b", "3")
}

func foreignBetweenTries(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	w := claim(t, faulty, "s", "w")
	foreign := 0
	var want []string
	faulty.OnFault = func() {
		text := fmt.Sprint("foreign ", foreign)
		head, err := log.Head(ctx, "s")
		require.NoError(t, err)
		_, err = eventlog.AppendOnce(ctx, log, "s", text, head, []eventlog.Entry{Text("s", text)})
		require.NoError(t, err)
		foreign++
	}
	for i, fault := range []Fault{LostRequest, Delay, Reordered, LostAnswer} {
		faulty.Next(fault)
		own := []string{fmt.Sprint("own ", i), fmt.Sprint("own ", i, "b")}
		require.NoError(t, w.Append(ctx, Text("s", own[0]), Text("s", own[1])))
		if fault == LostAnswer { // it was there first
			want = append(want, own...)
			want = append(want, fmt.Sprint("foreign ", i))
		} else {
			want = append(want, fmt.Sprint("foreign ", i))
			want = append(want, own...)
		}
	}
	require.NoError(t, w.Append(ctx, Text("s", "last")))
	require.Zero(t, faulty.Release(ctx), "no append waits for a place that another one has taken")
	requireOwn(t, log, w, append(want, "last")...)
}

func claimants(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	append1(t, log, "s", 0, "begin")
	const rounds, rivals = 8, 4
	for round := range rounds {
		writers, errs := make([]holder, rivals), make([]error, rivals)
		for i := range rivals { // all know the same log
			faulty := &Faulty{Log: log}
			faulty.Next([]Fault{NoFault, LostAnswer, LostRequest, Reordered}[(round+i)%4])
			writers[i] = unclaimed(t, faulty, "s", fmt.Sprintf("%d-%d", round, i))
		}
		var wg sync.WaitGroup
		for i, w := range writers {
			wg.Go(func() {
				if errs[i] = w.Claim(ctx, &fact.RunClaimed{RunID: "run-1", Node: "n", Base: base("s")}); errs[i] == nil {
					errs[i] = w.Append(ctx, Text("s", fmt.Sprint(round)))
				}
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
				continue
			}
			require.ErrorIs(t, err, eventlog.ErrSuperseded)
		}
		require.Equal(t, 1, won, "exactly one continues")
	}
	require.Equal(t, append([]string{"begin"}, numbered(0, rounds)...), texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}
