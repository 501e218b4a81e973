package logtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
)

// holder is a claimed writer and what it has observed.
type holder struct {
	*eventlog.Writer
	seen *[]eventlog.Record
}

func claim(t *testing.T, log eventlog.Log, session, id string) holder {
	t.Helper()
	h := unclaimed(t, log, session, id)
	require.NoError(t, h.Claim(ctxOf(t), &fact.RunClaimed{RunID: "run-1", Node: id, Attempt: 1, Base: base(session)}))
	return h
}

func unclaimed(t *testing.T, log eventlog.Log, session, id string) holder {
	head, status := uint64(0), eventlog.StreamActive
	for r, err := range log.Read(ctxOf(t), session, 0, 0) {
		if err != nil {
			require.ErrorIs(t, err, eventlog.ErrSessionNotFound)
			break
		}
		head, status = r.Sequence, status.After(r.Envelope)
	}
	h := holder{seen: new([]eventlog.Record)}
	h.Writer = eventlog.NewWriter(log, session, eventlog.WriterOptions{
		ID: id, Head: head, Status: status,
		Observe: func(r eventlog.Record) { *h.seen = append(*h.seen, r) },
	})
	return h
}

func fencing(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	one := claim(t, log, "s", "one")
	require.NoError(t, one.Append(ctx, Text("s", "a")))

	late := unclaimed(t, log, "s", "late")
	two := claim(t, log, "s", "two")
	require.ErrorIs(t, one.Append(ctx, Text("s", "fenced")), eventlog.ErrSuperseded)
	require.ErrorIs(t, one.Append(ctx, Text("s", "still fenced")), eventlog.ErrSuperseded)
	require.ErrorIs(t, late.Claim(ctx, &fact.RunClaimed{RunID: "run-1", Node: "late", Base: base("s")}),
		eventlog.ErrSuperseded, "of two claimants one wins")
	require.NoError(t, two.Append(ctx, Text("s", "b")))
	require.Equal(t, []string{"a", "b"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

func zombie(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	one := claim(t, log, "s", "one")
	require.NoError(t, one.Append(ctx, Text("s", "a")))
	for i := range 5 {
		next := claim(t, log, "s", fmt.Sprintf("next-%d", i))
		require.NoError(t, next.Append(ctx, Text("s", fmt.Sprint(i))))
	}
	for range 50 { // it does not know yet
		if err := one.Write(ctx, Text("s", "z")); err != nil {
			require.ErrorIs(t, err, eventlog.ErrSuperseded)
		}
	}
	require.ErrorIs(t, one.Append(ctx, Text("s", "x"), Text("s", "y")), eventlog.ErrSuperseded)
	require.ErrorIs(t, one.Flush(ctx), eventlog.ErrSuperseded)
	require.ErrorIs(t, one.Write(ctx, Text("s", "z")), eventlog.ErrSuperseded)
	require.Equal(t, []string{"a", "0", "1", "2", "3", "4"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

func foreignRecords(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	w := claim(t, log, "s", "w")
	for i := range 3 {
		head, err := log.Head(ctx, "s")
		require.NoError(t, err)
		append1(t, log, "s", head, fmt.Sprintf("foreign %d", i))
		require.NoError(t, w.Append(ctx, Text("s", fmt.Sprintf("own %d", i))))
	}
	all := collect(t, log.Read(ctx, "s", 0, 0))
	require.Equal(t, []string{"foreign 0", "own 0", "foreign 1", "own 1", "foreign 2", "own 2"}, texts(t, all))
	require.Equal(t, entriesOf(all), entriesOf(*w.seen), "everything is observed, once and in order")
}

func entriesOf(records []eventlog.Record) []string {
	out := make([]string, len(records))
	for i, r := range records {
		out[i] = fmt.Sprintf("%d %+v %s", r.Sequence, r.Envelope, r.Payload)
	}
	return out
}

func concurrentAppends(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	w := claim(t, log, "s", "w")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 25 {
				err := w.Append(ctx, Text("s", fmt.Sprintf("%d:%d", g, i)), Text("s", fmt.Sprintf("%d:%d'", g, i)))
				if err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := texts(t, collect(t, log.Read(ctx, "s", 0, 0)))
	require.Len(t, got, 8*25*2)
	for g := range 8 {
		mine := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s[0] != byte('0'+g) })
		for i := range 25 {
			require.Equal(t, fmt.Sprintf("%d:%d", g, i), mine[2*i])
			require.Equal(t, fmt.Sprintf("%d:%d'", g, i), mine[2*i+1])
		}
	}
	for i, r := range *w.seen {
		require.Equal(t, uint64(i+1), r.Ordinal)
	}
}

func lostAnswer(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	faulty.Next(LostAnswer)
	w := claim(t, faulty, "s", "w") // the claim's own answer is lost
	faulty.Next(LostAnswer, Duplicate, LostRequest, LostAnswer, NoFault, LostAnswer)
	for i := range 4 {
		require.NoError(t, w.Append(ctx, Text("s", fmt.Sprint(i)), Text("s", fmt.Sprintf("%db", i))))
	}
	all := collect(t, log.Read(ctx, "s", 0, 0))
	require.Equal(t, []string{"0", "0b", "1", "1b", "2", "2b", "3", "3b"}, texts(t, all))
	require.Equal(t, entriesOf(all), entriesOf(*w.seen))

	faulty.Next(LostAnswer)
	last, err := eventlog.AppendOnce(ctx, faulty, "new", "id-1", 0, []eventlog.Entry{Text("new", "x"), Text("new", "y")})
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, texts(t, collect(t, log.Read(ctx, "new", 0, last))))
	var conflict *eventlog.ConflictError
	_, err = eventlog.AppendOnce(ctx, faulty, "new", "id-2", 0, []eventlog.Entry{Text("new", "z")})
	require.ErrorAs(t, err, &conflict)
}

func lostRequest(t *testing.T, log eventlog.Log) {
	ctx := ctxOf(t)
	faulty := &Faulty{Log: log}
	w := claim(t, faulty, "s", "w")
	faulty.Next(LostRequest, LostRequest, LostRequest)
	require.NoError(t, w.Append(ctx, Text("s", "a")))
	require.NoError(t, w.Append(ctx, Text("s", "b")))
	require.Equal(t, []string{"a", "b"}, texts(t, collect(t, log.Read(ctx, "s", 0, 0))))
}

func unresolved(t *testing.T, log eventlog.Log) {
	faulty := &Faulty{Log: log}
	w := claim(t, faulty, "s", "w")
	ctx, cancel := context.WithCancel(ctxOf(t))
	faulty.Next(slices.Repeat([]Fault{LostRequest}, 1000)...)
	faulty.OnFault = cancel
	require.ErrorIs(t, w.Append(ctx, Text("s", "a")), eventlog.ErrOutcomeUnknown)
	require.ErrorIs(t, w.Append(ctxOf(t), Text("s", "b")), eventlog.ErrWriterBroken)
	next := claim(t, log, "s", "next")
	require.NoError(t, next.Append(ctxOf(t), Text("s", "c")))
	require.Equal(t, []string{"c"}, texts(t, collect(t, log.Read(ctxOf(t), "s", 0, 0))))
}
