package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkFanOut measures how soon clients of one session's /sse have a chunk that is
// appended over HTTP, one each 20 ms, and the CPU that a delivery costs, client
// included. An operation is a chunk.
func BenchmarkFanOut(b *testing.B) {
	for _, clients := range []int{100, 500} {
		b.Run(fmt.Sprint("clients=", clients), func(b *testing.B) {
			web := httptest.NewServer(benchAPI(b))
			b.Cleanup(web.Close)
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, DisableCompression: true}}
			b.Cleanup(client.CloseIdleConnections)
			require.NoError(b, postChunks(b.Context(), client, web.URL, "s", deltaOf("s", 0)))
			ctx, leave := context.WithCancel(b.Context())
			defer leave()
			sent := make([]time.Time, b.N)
			took := make([][]time.Duration, clients)
			var attached, done sync.WaitGroup
			attached.Add(clients)
			for i := range clients {
				done.Go(func() {
					err := hear(ctx, client, web.URL, b.N, func(n int) {
						if n < 0 {
							attached.Done()
							return
						}
						took[i] = append(took[i], time.Since(sent[n]))
					})
					if err != nil {
						b.Error(err)
					}
				})
			}
			attached.Wait()
			before := cpuTime()
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			b.ResetTimer()
			for n := range b.N {
				sent[n] = time.Now()
				if err := postChunks(ctx, client, web.URL, "s", deltaOf("s", n+1)); err != nil {
					b.Fatal(err)
				}
				<-tick.C
			}
			done.Wait()
			cpu := cpuTime() - before
			all := slices.Concat(took...)
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
			b.ReportMetric(float64(cpu.Microseconds())/float64(len(all)), "cpu-µs/delivery")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// hear attaches and calls got with -1 when it has the first chunk, and then with the number
// of each of count.
func hear(ctx context.Context, client *http.Client, url string, count int, got func(n int)) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sse?sessionId=s", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	in := bufio.NewReader(res.Body)
	for n := -1; n < count; {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			got(n)
			n++
		}
	}
	return nil
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
