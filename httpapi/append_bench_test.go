package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/engine"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog/jetstream"
	"github.com/helixd/helixd/eventlog/jetstream/jetstreamtest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/snapshot"
	foldsjs "github.com/helixd/helixd/snapshot/jetstream"
)

// benchAPI is a server on an embedded log on disk that is synced once a second.
func benchAPI(b *testing.B) *httpapi.Server {
	b.Helper()
	_, nc := embedtest.Start(b, embed.Options{SyncInterval: time.Second})
	log := jetstreamtest.Open(b, nc, &jetstream.Options{Durability: "interval=1s"})
	saved, err := foldsjs.Open(b.Context(), nc, layout.Hashed(1), 1)
	require.NoError(b, err)
	loop, err := engine.New(log, nil, nil)
	require.NoError(b, err)
	b.Cleanup(loop.Stop)
	served, err := httpapi.New(httpapi.Options{
		Log: log, Loop: loop, AllowUnauthenticated: true, States: snapshot.New(log, &snapshot.StoreOptions{Folds: saved}),
	})
	require.NoError(b, err)
	b.Cleanup(served.Close)
	return served
}

// deltaOf is a text_delta chunk of about 221 bytes.
func deltaOf(session string, n int) string {
	return fmt.Sprintf(`{"type":"text_delta","delta":"%08d %s","agentId":%q,"agentType":"writer","timestamp":1700000000000,"step":1}`,
		n, strings.Repeat("word ", 20), session)
}

// BenchmarkAppend measures POST /sessions/{id}/chunks. handler is one writer
// without a network, for what the server itself allocates; the others go over
// HTTP.
func BenchmarkAppend(b *testing.B) {
	b.Run("handler", func(b *testing.B) {
		srv := benchAPI(b)
		post := func(n int) {
			r := httptest.NewRequest("POST", "http://localhost/sessions/s/chunks", strings.NewReader(deltaOf("s", n)))
			w := httptest.NewRecorder()
			srv.ServeHTTP(w, r)
			if w.Code != 200 {
				b.Fatal(w.Code, w.Body.String())
			}
		}
		for n := range 100 {
			post(n)
		}
		b.ReportAllocs()
		b.ResetTimer()
		for n := range b.N {
			post(100 + n)
		}
	})
	for _, c := range []struct{ writers, chunks int }{{1, 1}, {64, 1}, {8, 500}, {8, 1000}} {
		b.Run(fmt.Sprintf("writers=%d/chunks=%d", c.writers, c.chunks), func(b *testing.B) {
			web := httptest.NewServer(benchAPI(b))
			b.Cleanup(web.Close)
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.writers, DialContext: new(net.Dialer).DialContext}}
			b.Cleanup(client.CloseIdleConnections)
			var left atomic.Int64
			left.Store(int64(b.N))
			began := time.Now()
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range c.writers {
				wg.Go(func() {
					session := fmt.Sprint("s-", i)
					var body strings.Builder
					for n := range c.chunks {
						body.WriteString(deltaOf(session, n))
						body.WriteByte('\n')
					}
					for left.Add(-1) >= 0 {
						if err := postChunks(b.Context(), client, web.URL, session, body.String()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N*c.chunks)/time.Since(began).Seconds(), "chunks/s")
		})
	}
}

func postChunks(ctx context.Context, client *http.Client, url, session, body string) error {
	req, err := http.NewRequestWithContext(ctx, "POST", url+"/sessions/"+session+"/chunks", strings.NewReader(body))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != 200 {
		err = fmt.Errorf("%d: %s", res.StatusCode, answer)
	}
	return err
}
