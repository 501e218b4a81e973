package maintenance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/integration/testkit"
)

// eraseRecords is how many unsealed records the erased session has.
const (
	eraseRecords = 100_000
	eraseWriters = 20
)

// BenchmarkEraseALongSession erases a session of 100,000 unsealed records and searches
// the files afterwards. It reports how long that takes, and how it slows appends of 20
// other sessions, each of which appends every 10 ms.
func BenchmarkEraseALongSession(b *testing.B) {
	for _, interval := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprint("sync=", interval), func(b *testing.B) {
			for b.Loop() {
				eraseALongSession(b, interval)
			}
		})
	}
}

func eraseALongSession(b *testing.B, interval time.Duration) {
	dir := b.TempDir()
	srv, nc := embedtest.Start(b, embed.Options{DataDir: dir, SyncInterval: interval, GroupSync: true})
	durability := eventlog.DurabilityFsync
	if interval > 0 {
		durability = eventlog.Durability("interval=" + interval.String())
	}
	// Without its sealer.
	log, err := Open(withHook(b.Context(), unhooked), nc, link.Options{Durability: durability, Server: srv})
	require.NoError(b, err)
	defer log.Close()
	head := uint64(0)
	for range eraseRecords / 500 {
		head, err = log.Append(b.Context(), "s", head, storetest.TextEntries(secretText+" and what else was said in this step of it", 500))
		require.NoError(b, err)
	}
	ctx, stop := context.WithCancel(b.Context())
	var mu sync.Mutex
	var waits []time.Duration
	var wg sync.WaitGroup
	for w := range eraseWriters {
		wg.Go(func() {
			session, head := fmt.Sprint("other", w), uint64(0)
			for tick := time.NewTicker(10 * time.Millisecond); ; {
				select {
				case <-ctx.Done():
					tick.Stop()
					return
				case <-tick.C:
				}
				began := time.Now()
				next, err := log.Append(b.Context(), session, head, storetest.TextEntries("kept", 1))
				if err != nil {
					b.Error(err)
					return
				}
				head = next
				mu.Lock()
				waits = append(waits, time.Since(began))
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	e, err := log.Erase(b.Context(), "s")
	took := time.Since(began)
	stop()
	wg.Wait()
	require.NoError(b, err)
	require.Equal(b, eventlog.Erasure{Records: eraseRecords}, e)
	files, err := testkit.Scan(b.Context(), dir, secretText)
	require.NoError(b, err)
	require.Empty(b, files)
	slices.Sort(waits)
	b.ReportMetric(took.Seconds(), "s/erasure")
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "ms-p99/append")
	b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1000, "ms-most/append")
}

func unhooked(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) }
