package client_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi/client"
	"github.com/helixd/helixd/integration/testkit"
)

// piped returns a client of handler. Both end with the test.
func piped(t *testing.T, handler http.HandlerFunc) *client.Client {
	return client.New("http://x", &client.Options{HTTPClient: testkit.Piped(t, handler)})
}

func answers(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for _, tc := range []struct {
		header string
		waits  []time.Duration // before each repetition
	}{
		{"", []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"nonsense", []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{"3", []time.Duration{3 * time.Second, 3 * time.Second, 4 * time.Second}},
		{"date", []time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second}},
		{"120", []time.Duration{2 * time.Minute, 2 * time.Minute, 2 * time.Minute}},
		{"121", nil}, // it is not waited for, and not disregarded
	} {
		synctest.Test(t, func(t *testing.T) {
			var waits []time.Duration
			var before time.Time
			c := piped(t, func(w http.ResponseWriter, _ *http.Request) {
				if !before.IsZero() {
					waits = append(waits, time.Since(before))
				}
				before = time.Now()
				value := tc.header
				if value == "date" {
					value = before.Add(10 * time.Second).UTC().Format(http.TimeFormat)
				}
				w.Header().Set("Retry-After", value)
				answers(w, 503, `{"error":"the server is stopping","code":"UNAVAILABLE"}`)
			})
			_, err := c.Status(t.Context(), "s")
			refused(t, err, 503, "UNAVAILABLE")
			require.Equal(t, tc.waits, waits, tc.header)
		})
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, func(w http.ResponseWriter, _ *http.Request) {
			answers(w, 503, `{"error":"stopping","code":"UNAVAILABLE"}`)
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		for _, err := range c.Stream(ctx, "s", 0) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "503 UNAVAILABLE: stopping", "why it had not succeeded by then")
		}
		require.Equal(t, 2*time.Second, time.Since(began))
	})
}

// A proxy that ends connections after some minutes, while a run waits for a
// tool, does not end the stream.
func TestConnectionsThatLastDontCountAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		c := piped(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			if connections++; connections > 20 {
				_, _ = io.WriteString(w, "event: end\ndata: {}\n\n")
				return
			}
			for range 4 {
				_, _ = io.WriteString(w, ": heartbeat\n\n")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(15 * time.Second)
			}
		})
		var last client.Event
		for e, err := range c.Stream(t.Context(), "s", 0) {
			require.NoError(t, err)
			last = e
		}
		require.Equal(t, client.EndEvent{}, last)
	})
}

// A server that says nothing at all is given up, however long its connections
// stand.
func TestSilenceIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connections := 0
		c := piped(t, func(w http.ResponseWriter, r *http.Request) {
			connections++
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		for _, err := range c.Stream(t.Context(), "s", 0) {
			require.ErrorIs(t, err, client.ErrStreamDropped)
		}
		require.Equal(t, 4, connections)
	})
}

// What may take long on the server is waited for.
func TestLongWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := piped(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-time.After(2 * time.Hour):
			case <-r.Context().Done():
			}
			answers(w, 200, `{"sessionId":"s","purged":[],"dropped":{}}`)
		})
		day := 24 * time.Hour
		_, err := c.Retain(t.Context(), client.Retention{DropOlderThan: &day})
		require.NoError(t, err)
		_, err = c.Import(t.Context(), "s", opens([]byte("{}\n")))
		require.NoError(t, err)
		_, err = c.Status(t.Context(), "s")
		require.ErrorIs(t, err, client.ErrUnreachable)
		require.Equal(t, "remote: the agent server does not answer: silent for too long", fmt.Sprint(err))
	})
}
