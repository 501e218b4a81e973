package jetstream_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/logtest"
)

const (
	sparseForeign = 1_200_000 // records of other sessions; with -short a twentieth
	sparseText    = 280       // bytes of each record's text, about 500 when stored
	sparseIslands = 20
	sparseRounds  = 3
)

// BenchmarkReadAcrossManyBlocks measures the cost of reading a session with 600 MB of
// other sessions' records in between, and of the same session without: in milliseconds
// and allocations, the server's part included. Before each operation the server is
// restarted, so that it has nothing in memory.
//
// "waited" has 100 records, then all those of the others, then 5 more; "islands" has 20
// times 10 among the others'. Each exists sealed before every gap, and not sealed at all.
func BenchmarkReadAcrossManyBlocks(b *testing.B) {
	dir := b.TempDir()
	// So long that the log seals nothing by itself.
	const interval = time.Minute
	var srv *embed.Server
	var log *jetstream.Log
	stop := func() {}
	restart := func() {
		stop()
		var err error
		srv, err = embed.Start(b.Context(), embed.Options{DataDir: dir, SyncInterval: interval})
		require.NoError(b, err)
		nc, err := srv.Connect()
		require.NoError(b, err)
		log, err = jetstream.Open(b.Context(), nc, &jetstream.Options{Durability: eventlog.Durability("interval=" + interval.String())})
		require.NoError(b, err)
		stop = func() { log.Close(); nc.Close(); srv.Stop() }
	}
	defer func() { stop() }()
	restart()
	heads := map[string][]uint64{} // the head after 0, 1, ... records
	add := func(session string, n int) {
		if heads[session] == nil {
			heads[session] = []uint64{0}
		}
		var entries []eventlog.Entry
		for range n {
			entries = append(entries, logtest.Text(session, likeLanguage(sparseText)))
		}
		last, err := log.Append(b.Context(), session, heads[session][len(heads[session])-1], entries)
		require.NoError(b, err)
		for i := range n {
			heads[session] = append(heads[session], last-uint64(n-1-i))
		}
	}
	write := func(name string, n int, seal bool) {
		for i := range sparseRounds {
			add(fmt.Sprint(name, "-log-", i), n)
			add(fmt.Sprint(name, "-sealed-", i), n)
			if seal {
				require.NoError(b, log.Seal(b.Context(), fmt.Sprint(name, "-sealed-", i)))
			}
		}
	}
	foreign := sparseForeign
	if testing.Short() {
		foreign /= 20
	}
	write("waited", 100, true)
	for range sparseIslands {
		write("islands", 10, true)
		for i := range foreign / sparseIslands / eventlog.MaxAppendRecords {
			session := fmt.Sprint("foreign", i%20)
			add(session, eventlog.MaxAppendRecords)
			require.NoError(b, log.Seal(b.Context(), session))
		}
	}
	write("waited-dense", 100, true)
	for range sparseIslands {
		write("islands-dense", 10, true)
	}
	restart()
	write("waited", 5, false)
	write("waited-dense", 5, false)

	for _, op := range []struct {
		name string
		do   func(session string, heads []uint64) int
	}{
		{"head", func(session string, heads []uint64) int {
			_, err := log.Head(b.Context(), session)
			require.NoError(b, err)
			return 0
		}},
		{"last", func(session string, heads []uint64) int {
			return count(b, log.Read(b.Context(), session, heads[95], 0)) - len(heads) + 96
		}},
		{"all", func(session string, heads []uint64) int {
			return count(b, log.Read(b.Context(), session, 0, 0)) - len(heads) + 1
		}},
		{"follow", func(session string, heads []uint64) int {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			for r, err := range log.Follow(ctx, session, heads[100]) {
				require.NoError(b, err)
				if r.Sequence == heads[len(heads)-1] {
					break
				}
			}
			return 0
		}},
		{"erase", func(session string, heads []uint64) int {
			e, err := log.Erase(b.Context(), session)
			require.NoError(b, err)
			return e.Records - len(heads) + 1
		}},
	} {
		for _, what := range []string{"waited", "islands"} {
			for _, where := range []string{"sealed", "log"} {
				b.Run(op.name+"/"+what+"/"+where, func(b *testing.B) {
					rounds := sparseRounds
					if op.name == "erase" { // seconds for each
						rounds = 1
					}
					var took, allocated [2]float64
					for i, name := range []string{what, what + "-dense"} {
						var times, bytes []float64
						for round := range rounds {
							session := fmt.Sprint(name, "-", where, "-", round)
							restart()
							var before, after runtime.MemStats
							runtime.ReadMemStats(&before)
							began := time.Now()
							off := op.do(session, heads[session])
							times = append(times, float64(time.Since(began).Microseconds())/1000)
							runtime.ReadMemStats(&after)
							bytes = append(bytes, float64(after.TotalAlloc-before.TotalAlloc)/(1<<20))
							require.Zero(b, off)
						}
						slices.Sort(times)
						slices.Sort(bytes)
						took[i], allocated[i] = times[rounds/2], bytes[rounds/2]
					}
					b.ReportMetric(took[0], "ms")
					b.ReportMetric(took[1], "dense-ms")
					b.ReportMetric(allocated[0], "MiB")
					b.ReportMetric(allocated[1], "dense-MiB")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

func count(b *testing.B, records func(func(eventlog.Record, error) bool)) (n int) {
	b.Helper()
	for _, err := range records {
		require.NoError(b, err)
		n++
	}
	return n
}

// likeLanguage is text that compresses about as well as language does.
func likeLanguage(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "etaoinshrdlu    "[rand.IntN(16)]
	}
	return string(b)
}
