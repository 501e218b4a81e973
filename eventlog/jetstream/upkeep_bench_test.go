package jetstream

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
)

const (
	upkeepSessions = 300
	upkeepRecords  = 400 // of each
	upkeepWriters  = 20
)

// BenchmarkAppendsBesideUpkeep appends at a fixed rate: alone, during a purge of
// everything that is sealed, during a trim of every session, and during erasures. It
// reports the slowest appends of each. Judge the ratios.
func BenchmarkAppendsBesideUpkeep(b *testing.B) {
	_, nc := embedtest.Start(b, embed.Options{})
	log, err := Open(b.Context(), nc, &Options{Durability: eventlog.DurabilityFsync})
	require.NoError(b, err)
	defer log.Close()
	entry := func(session string) eventlog.Entry {
		return eventlog.Entry{
			Envelope: eventlog.Envelope{Kind: eventlog.KindChunk, Type: "x", Agent: session}, Payload: []byte(`"` + strings.Repeat("x", 200) + `"`),
		}
	}
	heads := make([]uint64, upkeepSessions)
	for i := range heads {
		session := fmt.Sprint("s", i)
		for range upkeepRecords / 100 {
			heads[i], err = log.Append(b.Context(), session, heads[i], slices.Repeat([]eventlog.Entry{entry(session)}, 100))
			require.NoError(b, err)
		}
		require.NoError(b, log.Seal(b.Context(), session))
	}
	round := 0
	beside := func(what string, f func()) (p50, p99 time.Duration) {
		round++
		ctx, cancel := context.WithCancel(b.Context())
		defer cancel()
		var mu sync.Mutex
		var all []time.Duration
		var wg sync.WaitGroup
		for w := range upkeepWriters {
			wg.Go(func() {
				session, head := fmt.Sprint("live", round, "-", w), uint64(0)
				for tick := time.NewTicker(10 * time.Millisecond); ; {
					select {
					case <-ctx.Done():
						tick.Stop()
						return
					case <-tick.C:
					}
					began := time.Now()
					next, err := log.Append(b.Context(), session, head, []eventlog.Entry{entry(session)})
					if err != nil {
						b.Error(err)
						return
					}
					took := time.Since(began)
					head = next
					mu.Lock()
					all = append(all, took)
					mu.Unlock()
				}
			})
		}
		began := time.Now()
		f()
		took := time.Since(began)
		cancel()
		wg.Wait()
		slices.Sort(all)
		p50, p99 = all[len(all)/2], all[len(all)*99/100]
		b.Logf("%-12s took %8s; %d appends, p50 %s p99 %s most %s", what, took.Round(time.Millisecond), len(all), p50, p99, all[len(all)-1])
		return p50, p99
	}
	for b.Loop() {
		_, alone := beside("alone", func() { time.Sleep(3 * time.Second) })
		_, purge := beside("purge", func() {
			_, err := log.Purge(b.Context(), eventlog.PurgeOptions{SealedFor: time.Nanosecond})
			require.NoError(b, err)
		})
		_, trim := beside("trim", func() {
			for i, head := range heads {
				_, err := log.Trim(b.Context(), fmt.Sprint("s", i), head)
				require.NoError(b, err)
			}
		})
		_, erase := beside("erase", func() {
			for i := range 20 {
				_, err := log.Erase(b.Context(), fmt.Sprint("s", i))
				require.NoError(b, err)
			}
		})
		b.ReportMetric(float64(purge)/float64(alone), "purge/alone")
		b.ReportMetric(float64(trim)/float64(alone), "trim/alone")
		b.ReportMetric(float64(erase)/float64(alone), "erase/alone")
	}
}
