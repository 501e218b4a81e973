package jetstream_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

// BenchmarkAppend measures appends of one chunk, flat out, by a number of
// sessions at once. One operation is one acknowledged append.
func BenchmarkAppend(b *testing.B) {
	for _, mode := range []struct {
		name       string
		sync       time.Duration
		durability eventlog.Durability
	}{
		{"fsync", 0, eventlog.DurabilityFsync},
		// The server syncs every append; the log is told otherwise, so that
		// each goes by itself, as plain JetStream publishes do.
		{"fsync-ungrouped", 0, "interval=1s"},
		{"interval=1s", time.Second, "interval=1s"},
	} {
		for _, sessions := range []int{1, 15, 64, 512} {
			b.Run(fmt.Sprintf("%s/sessions=%d", mode.name, sessions), func(b *testing.B) {
				log := openAs(b, mode.sync, mode.durability)
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

// BenchmarkCatchUp measures reading a whole session of so many records among
// others' records, from its sealed segments and, as it is before sealing, from
// the log. One operation is one session.
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
