package jetstream_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/logtest"
)

// BenchmarkAppend measures appends of one chunk, without pauses, by a number of sessions
// at once. One operation is one acknowledged append.
func BenchmarkAppend(b *testing.B) {
	for _, mode := range []struct {
		name string
		open func() eventlog.Log
	}{
		{"fsync", func() eventlog.Log { _, _, log := openGroupSync(b); return log }},
		// The server syncs by itself, and the log gathers appends in atomic batches.
		{"fsync-by-server", func() eventlog.Log { return open(b, 0) }},
		{"interval=1s", func() eventlog.Log { return open(b, time.Second) }},
	} {
		for _, sessions := range []int{1, 15, 64, 512} {
			b.Run(fmt.Sprintf("%s/sessions=%d", mode.name, sessions), func(b *testing.B) {
				log := mode.open()
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var wg sync.WaitGroup
				for s := range sessions {
					wg.Go(func() {
						session, head := fmt.Sprint("s", s), uint64(0)
						entry := []eventlog.Entry{logtest.Text(session, "Hello, this is a word or two of text. ")}
						for left.Add(-1) >= 0 {
							last, err := log.Append(b.Context(), session, head, entry)
							if err != nil {
								b.Error(err)
								return
							}
							head = last
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			})
		}
	}
}

// BenchmarkWriterAppend measures the cost of an agent's chunk from its creation to the
// fold: one session, one append at a time. Allocations include the server's.
func BenchmarkWriterAppend(b *testing.B) {
	log := openAs(b, time.Second, "interval=1s")
	w := eventlog.NewWriter(log, "s", eventlog.WriterOptions{ID: "w", Observe: func(r eventlog.Record) {
		if _, err := r.Chunk(); err != nil {
			b.Error(err)
		}
	}})
	defer w.Stop()
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Append(b.Context(), logtest.Text("s", "Hello, this is a word or two of text. ")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCatchUp measures reading a whole session of that many records among other
// sessions' records, from its sealed segments and, as before sealing, from the log. One
// operation is one session.
func BenchmarkCatchUp(b *testing.B) {
	for _, size := range []struct{ records, foreign int }{{400, 100_000}, {20_000, 100_000}} {
		log := open(b, time.Second).(*jetstream.Log)
		heads := map[string]uint64{}
		add := func(session string, n int) {
			entries := make([]eventlog.Entry, n)
			for i := range entries {
				entries[i] = logtest.Text(session, fmt.Sprint("Hello, this is a word or two of text. ", i))
			}
			last, err := log.Append(b.Context(), session, heads[session], entries)
			if err != nil {
				b.Fatal(err)
			}
			heads[session] = last
		}
		const rounds = 200
		for i := range rounds {
			add("own", size.records/rounds)
			add(fmt.Sprint("other", i%10), size.foreign/rounds)
		}
		for _, from := range []string{"log", "segments"} {
			if from == "segments" {
				if err := log.Seal(b.Context(), "own"); err != nil {
					b.Fatal(err)
				}
			}
			b.Run(fmt.Sprintf("records=%d/foreign=%d/%s", size.records, size.foreign, from), func(b *testing.B) {
				for range b.N {
					n := 0
					for _, err := range log.Read(b.Context(), "own", 0, 0) {
						if err != nil {
							b.Fatal(err)
						}
						n++
					}
					if n != size.records {
						b.Fatal(n)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size.records), "µs/record")
			})
		}
	}
}

// BenchmarkAppendMeasured measures the cost of metrics for an append, where appends are
// cheapest: alternating between a log without and one with them. The ratio is the median
// time with metrics divided by that without.
func BenchmarkAppendMeasured(b *testing.B) {
	srv := embedtest.Server(b, embed.Options{SyncInterval: time.Second})
	sides := [2]struct {
		metrics *jetstream.Metrics
		session string
		log     eventlog.Log
		head    uint64
		took    []time.Duration // of each turn
	}{{session: "plain"}, {session: "measured", metrics: jetstream.NewMetrics(prometheus.NewRegistry())}}
	for i := range sides {
		nc, err := srv.Connect()
		require.NoError(b, err)
		b.Cleanup(nc.Close)
		sides[i].log = jetstreamtest.Open(b, nc, &jetstream.Options{Durability: "interval=1s", Metrics: sides[i].metrics})
	}
	const turn = 10
	for b.Loop() {
		for i := range sides {
			side := &sides[i]
			entry := []eventlog.Entry{logtest.Text(side.session, "Hello, this is a word or two of text. ")}
			began := time.Now()
			for range turn {
				var err error
				if side.head, err = side.log.Append(b.Context(), side.session, side.head, entry); err != nil {
					b.Fatal(err)
				}
			}
			side.took = append(side.took, time.Since(began))
		}
	}
	median := func(took []time.Duration) float64 {
		slices.Sort(took)
		return float64(took[len(took)/2])
	}
	b.ReportMetric(median(sides[1].took)/median(sides[0].took), "ratio")
}
