package jetstream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// contend lets two nodes append to one session at the same time, n times each, and calls
// lost for each comparison that fails.
func contend(t testing.TB, all [3]opened, n int, lost func(expected uint64, err error, took time.Duration)) (stored int) {
	head, err := eventlog.AppendOnce(t.Context(), all[0].log, "s", "first", 0, []eventlog.Entry{logtest.Text("s", "a")})
	require.NoError(t, err)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 2 {
		wg.Go(func() {
			log, head := all[w].log, head
			for range n {
				began := time.Now()
				last, err := log.Append(t.Context(), "s", head, []eventlog.Entry{logtest.Text("s", "b")})
				took := time.Since(began)
				mu.Lock()
				if err != nil {
					lost(head, err, took)
				} else {
					stored++
				}
				mu.Unlock()
				if err != nil {
					if last, err = log.Head(t.Context(), "s"); err != nil {
						t.Error(err)
						return
					}
				}
				head = last
			}
		})
	}
	wg.Wait()
	return stored
}

// If several appends compare at the same time on several replicas, the losers receive the
// head, and know that they have stored nothing.
func TestALostComparisonOnAClusterTellsTheHead(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	all := openAll(t, threeNodes(t), jetstream.Options{Partitions: 1, Replicas: 3})
	conflicts, unknown := 0, 0
	stored := contend(t, all, 100, func(expected uint64, err error, _ time.Duration) {
		var conflict *eventlog.ConflictError
		if errors.Is(err, nats.ErrTimeout) { // of a busy machine
			unknown++
			return
		}
		require.ErrorAs(t, err, &conflict)
		require.Greater(t, conflict.Head, expected)
		conflicts++
	})
	require.NotZero(t, conflicts)
	require.InDelta(t, 1+stored, len(logtest.Records(t, all[2].log, "s")), float64(unknown))
}

// besideABusyWriter sends n commands to a session through one node while the writer of
// another one always has an append in flight. It returns how long each took, and how many
// texts were appended.
func besideABusyWriter(t testing.TB, all [3]opened, n int) (took []time.Duration, texts int) {
	w := eventlog.NewWriter(all[0].log, "s", eventlog.WriterOptions{ID: "w", NoMerge: true})
	defer w.Stop()
	require.NoError(t, w.Append(t.Context(), logtest.Text("s", "0")))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		for texts = 1; ctx.Err() == nil; texts++ {
			if err := w.Append(t.Context(), logtest.Text("s", fmt.Sprint(texts))); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	commands, err := eventlog.NewStreams(all[1].log).CreateWriter("s", "s", "writer")
	require.NoError(t, err)
	for i := range n {
		began := time.Now()
		_, err := commands.Write(t.Context(), &eventlog.TextDelta{
			Delta: fmt.Sprint(i), Base: eventlog.Base{AgentID: "s", AgentType: "writer", Timestamp: 1},
		})
		require.NoError(t, err)
		took = append(took, time.Since(began))
	}
	stop()
	require.NoError(t, <-done)
	return took, texts
}

// Commands through another node are recorded, once and in order, while a writer continues
// without a pause, and the writer loses nothing.
func TestCommandsPassABusyWriterOfACluster(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	all := openAll(t, threeNodes(t), jetstream.Options{Partitions: 1, Replicas: 3})
	const n = 20
	_, texts := besideABusyWriter(t, all, n)
	var commands, said []string
	for _, r := range logtest.Records(t, all[2].log, "s") {
		c, err := r.Chunk()
		require.NoError(t, err)
		text := c.(*eventlog.TextDelta).Delta
		if r.Writer == "w" {
			said = append(said, text)
		} else {
			commands = append(commands, text)
		}
	}
	numbers := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprint(i))
		}
		return all
	}
	require.Equal(t, numbers(n), commands)
	require.Equal(t, numbers(texts), said)
}

// BenchmarkContention measures, on three replicas, the time until a lost comparison is
// answered, and the time until a command through another node is recorded while a writer
// never pauses.
func BenchmarkContention(b *testing.B) {
	report := func(b *testing.B, took []time.Duration) {
		slices.Sort(took)
		for _, p := range []int{50, 99} {
			b.ReportMetric(float64(took[len(took)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
		}
	}
	b.Run("lost comparison", func(b *testing.B) {
		all := openAll(b, threeNodes(b), jetstream.Options{Partitions: 1, Replicas: 3})
		var took []time.Duration
		b.ResetTimer()
		contend(b, all, max(b.N, 100), func(_ uint64, _ error, d time.Duration) { took = append(took, d) })
		report(b, took)
	})
	b.Run("command beside a writer", func(b *testing.B) {
		all := openAll(b, threeNodes(b), jetstream.Options{Partitions: 1, Replicas: 3})
		b.ResetTimer()
		took, texts := besideABusyWriter(b, all, max(b.N, 100))
		report(b, took)
		b.ReportMetric(float64(texts)/b.Elapsed().Seconds(), "writer-appends/s")
	})
}
