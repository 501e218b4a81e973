package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/eventlog/memory"
	"github.com/helixd/helixd/httpapi/api"
)

// useKeys appends n times, each with another key.
func useKeys(t *testing.T, log eventlog.Log, session string, n int) {
	head, err := log.Head(t.Context(), session)
	require.NoError(t, err)
	for n > 0 {
		entries := make([]eventlog.Entry, min(n, eventlog.MaxAppendRecords))
		for i := range entries {
			e, err := eventlog.NewChunk(&eventlog.TextDelta{Delta: "x", Base: eventlog.Base{AgentID: session, AgentType: "a"}}, eventlog.Labels{})
			require.NoError(t, err)
			e.Writer, e.Ordinal = eventlog.KeyedWriter(fmt.Sprint("key-", head, "-", i), "digest"), 1
			entries[i] = e
		}
		head, err = log.Append(t.Context(), session, head, entries)
		require.NoError(t, err)
		n -= len(entries)
	}
}

func TestChunksIdempotency(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	body := lines("s", "a", 3)
	first := a.post(chunksOf("s"), body, idemKey, "k:1", expected, "0").appended(t)
	a.post(chunksOf("other"), line("other", "x"), idemKey, "k:1").appended(t) // keys are a session's own
	a.post(chunksOf("s"), line("s", "between"), idemKey, "k:2").appended(t)

	// The client repeats what it had no answer to, in whichever form and with
	// the expectation that holds no more.
	for _, same := range []string{body, strings.ReplaceAll(body, `,"`, ` , "`), "[" + strings.ReplaceAll(strings.TrimSpace(body), "\n", ",") + "]"} {
		require.Equal(t, first, a.post(chunksOf("s"), same, idemKey, "k:1", expected, "0").appended(t))
		require.Equal(t, first, a.post(chunksOf("s"), same, idemKey, "k:1").appended(t))
		require.Equal(t, first, a.post(chunksOf("s"), same, idemKey, "k:1", expected, "999").appended(t))
	}
	for _, another := range []string{lines("s", "a", 2), lines("s", "a", 4), lines("s", "b", 3)} {
		a.post(chunksOf("s"), another, idemKey, "k:1").failed(t, 409, api.CodeIdempotencyMismatch)
	}
	a.post("/sessions/s/end", "{}", idemKey, "k:1").failed(t, 409, api.CodeIdempotencyMismatch)
	require.Equal(t, []string{"a0", "a1", "a2", "between"}, a.texts("s"))

	// Also after the end of the stream, and by another server on the same log.
	end := a.post("/sessions/s/end", `{"finalOutput":{"x":1}}`, idemKey, "end").appended(t)
	require.Equal(t, first, a.post(chunksOf("s"), body, idemKey, "k:1").appended(t))
	b := newAPIOn(t, a.log, nil)
	require.Equal(t, first, b.post(chunksOf("s"), body, idemKey, "k:1").appended(t))
	require.Equal(t, end, b.post("/sessions/s/end", `{ "finalOutput": {"x" :1} }`, idemKey, "end").appended(t))

	for _, key := range []string{strings.Repeat("k", 257), "\xff", "a\tb"} {
		got := a.post(chunksOf("t"), line("t", "x"), idemKey, key).failed(t, 400, api.CodeInvalidRequest)
		require.Equal(t, map[string]any{"field": idemKey}, got.Detail)
	}
	a.post(chunksOf("t"), line("t", "x"), idemKey, "").failed(t, 400, api.CodeInvalidRequest)
	a.post(chunksOf("t"), line("t", "x"), idemKey, strings.Repeat("é", 128)).appended(t)
	raw(t, a, "POST /sessions/t/chunks HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]").
		failed(t, 400, api.CodeInvalidRequest)
}

// TestChunksSameKeyAtOnce: all who ask with one key get one answer, and there
// is one append.
func TestChunksSameKeyAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	b := newAPIOn(t, a.log, nil) // another process
	for round := range 10 {
		session := fmt.Sprint("s", round)
		body := lines(session, "x", 5)
		got := make([]answer, 8)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				got[i] = []*testAPI{a, b}[i%2].post(chunksOf(session), body, idemKey, "k")
			})
		}
		all.Wait()
		first := got[0].appended(t)
		for _, g := range got {
			require.Equal(t, first, g.appended(t))
		}
		require.Len(t, a.texts(session), 5)
	}
}

// TestChunksLostAnswers: whatever becomes of the log's answers, there is one
// append, and its sequences.
func TestChunksLostAnswers(t *testing.T) {
	t.Parallel()
	for _, fault := range []logtest.Fault{logtest.LostAnswer, logtest.LostRequest, logtest.Duplicate} {
		for _, headers := range [][]string{nil, {idemKey, "k"}, {idemKey, "k", expected, "2"}, {expected, "2"}} {
			log := &logtest.Faulty{Log: memory.New()}
			a := newAPIOn(t, log, nil)
			a.post(chunksOf("s"), lines("s", "a", 2), expected, "0").appended(t)
			log.Next(fault, fault)
			got := a.post(chunksOf("s"), lines("s", "b", 3), headers...).appended(t)
			require.Equal(t, api.Appended{FirstSequence: 3, LastSequence: 5, Count: 3}, got)
			log.Next(fault)
			got = a.post("/sessions/s/end", "", idemKey, "end").appended(t)
			require.EqualValues(t, 6, got.LastSequence)
			require.EqualValues(t, 6, a.head("s"))
		}
	}
}

// TestChunksProducersAtOnce: producers that expect nothing keep each other's
// records and their own order.
func TestChunksProducersAtOnce(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const each, batch = 25, 4
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		all.Go(func() {
			for i := range each {
				if got := a.post(chunksOf("s"), lines("s", fmt.Sprintf("%s%d.", name, i), batch)); got.status != 200 {
					t.Error(got.body)
				}
			}
		})
	}
	all.Wait()
	next := map[string]int{}
	for i, s := range a.texts("s") {
		name := s[:1]
		require.Equal(t, fmt.Sprintf("%s%d.%d", name, next[name]/batch, next[name]%batch), s)
		require.True(t, i%batch == 0 || next[name]%batch != 0, "an append is not torn apart")
		next[name]++
	}
	require.Equal(t, map[string]int{"a": each * batch, "b": each * batch}, next)
}
