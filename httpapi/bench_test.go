package httpapi_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// BenchmarkGetState measures GET /sessions/{id}/state?at=n as a client sees it,
// at any sequence of a session of 100,000 records on disk whose timeline was
// shown. One operation is one answer, read to its end.
func BenchmarkGetState(b *testing.B) {
	const records = 100_000
	_, nc := embedtest.Start(b, embed.Options{SyncInterval: time.Second})
	log := jetstreamtest.Open(b, nc, &jetstream.Options{Durability: "interval=1s"})
	saved, err := foldsjs.Open(b.Context(), nc, layout.Hashed(1), 1)
	require.NoError(b, err)
	head := uint64(0)
	for entries := range slices.Chunk(logtest.LongSession("s", records), 500) {
		head, err = log.Append(b.Context(), "s", head, entries)
		require.NoError(b, err)
	}
	loop, err := engine.New(log, nil, nil)
	require.NoError(b, err)
	b.Cleanup(loop.Stop)
	served, err := httpapi.New(httpapi.Options{
		Log: log, Loop: loop, AllowUnauthenticated: true, States: snapshot.New(log, &snapshot.StoreOptions{Folds: saved}),
	})
	require.NoError(b, err)
	web := httptest.NewServer(served)
	b.Cleanup(web.Close)
	b.Cleanup(served.Close)
	get := func(path string) int64 {
		res, err := http.Get(web.URL + path)
		require.NoError(b, err)
		defer res.Body.Close()
		require.Equal(b, 200, res.StatusCode)
		n, err := io.Copy(io.Discard, res.Body)
		require.NoError(b, err)
		return n
	}
	get("/sessions/s/timeline")
	rnd, took, size := rand.New(rand.NewPCG(1, 2)), []time.Duration{}, int64(0)
	b.ResetTimer()
	for range b.N {
		began := time.Now()
		size += get(fmt.Sprint("/sessions/s/state?at=", 1+rnd.Uint64N(records)))
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(size)/float64(b.N)/(1<<20), "MiB")
	b.ReportMetric(0, "ns/op")
}
