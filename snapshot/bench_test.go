package snapshot_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	logjs "github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// longLog returns a log on disk with a session s of that many records, its saved folds,
// and a function that returns how many MiB streams have, before compression.
func longLog(b *testing.B, records int) (eventlog.Log, snapshot.Folds, func(streams ...string) float64) {
	_, nc := embedtest.Start(b, embed.Options{SyncInterval: time.Second})
	log, err := logjs.Open(b.Context(), nc, &logjs.Options{Durability: "interval=1s"})
	require.NoError(b, err)
	b.Cleanup(func() { log.Close() })
	folds, err := foldsjs.Open(b.Context(), nc, layout.Hashed(1), 1)
	require.NoError(b, err)
	states, head := snapshot.New(log, &snapshot.StoreOptions{Folds: folds}), uint64(0)
	for entries := range slices.Chunk(logtest.LongSession("s", records), 500) {
		head, err = log.Append(b.Context(), "s", head, entries)
		require.NoError(b, err)
		if head%5_000 == 0 { // a reader asks for the state from time to time
			_, err := states.Head(b.Context(), "s")
			require.NoError(b, err)
		}
	}
	js, err := natsjs.New(nc)
	require.NoError(b, err)
	return log, folds, func(streams ...string) (size float64) {
		for _, name := range streams {
			s, err := js.Stream(b.Context(), name)
			require.NoError(b, err)
			size += float64(s.CachedInfo().State.Bytes) / (1 << 20)
		}
		return size
	}
}

// BenchmarkStateAt measures the state at any sequence of a session of 100,000 records: in
// a process that has not seen the session, in one that has shown its timeline, and for a
// reader that moves back and forth. One operation is one state.
func BenchmarkStateAt(b *testing.B) {
	const records = 100_000
	log, folds, size := longLog(b, records)
	anywhere := func(r *rand.Rand, _ uint64) uint64 { return 1 + r.Uint64N(records) }
	for _, c := range []struct {
		name  string
		fresh bool
		next  func(r *rand.Rand, last uint64) uint64
	}{
		{"first", true, anywhere},
		{"any", false, anywhere},
		{"scrub", false, func(r *rand.Rand, last uint64) uint64 {
			return min(max(last+[]uint64{1, 7, 40, ^uint64(19)}[r.IntN(4)], 1), records)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
			rnd, n := rand.New(rand.NewPCG(1, 2)), uint64(records/2)
			if !c.fresh {
				_, err := states.Timeline(b.Context(), "s", 0)
				require.NoError(b, err)
			}
			var took []time.Duration
			b.ResetTimer()
			for range b.N {
				if c.fresh {
					states.Forget("s")
				}
				n = c.next(rnd, n)
				began := time.Now()
				t, err := states.At(b.Context(), "s", n)
				took = append(took, time.Since(began))
				if err != nil || t.Head != n {
					b.Fatal(n, err)
				}
			}
			report(b, took)
			if c.fresh {
				b.ReportMetric(size("HELIX_LOG_0", "HELIX_SEG_0"), "log-MiB")
				b.ReportMetric(size("HELIX_SNAP_0"), "folds-MiB")
			}
		})
	}
}

// report reports the median and the 99th percentile.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTimeline measures the timeline of sessions that were not requested before, and
// the change after ten records. One operation is one timeline.
func BenchmarkTimeline(b *testing.B) {
	for _, records := range []int{50_000, 100_000} {
		log, folds, _ := longLog(b, records)
		b.Run(fmt.Sprintf("records=%d/first", records), func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				began := time.Now()
				v, err := snapshot.New(log, &snapshot.StoreOptions{Folds: folds}).Timeline(b.Context(), "s", 0)
				took = append(took, time.Since(began))
				require.NoError(b, err)
				b.ReportMetric(float64(len(v.Spans)), "spans")
			}
			report(b, took)
		})
		b.Run(fmt.Sprintf("records=%d/news", records), func(b *testing.B) {
			states := snapshot.New(log, &snapshot.StoreOptions{Folds: folds})
			v, err := states.Timeline(b.Context(), "s", 0)
			require.NoError(b, err)
			var took []time.Duration
			b.ResetTimer()
			for range b.N {
				began := time.Now()
				_, err := states.Timeline(b.Context(), "s", v.Head)
				took = append(took, time.Since(began))
				require.NoError(b, err)
			}
			report(b, took)
		})
	}
}
