package jetstream_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/helixd/helixd/eventlog"
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
