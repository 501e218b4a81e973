package remotehttp_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/remote"
	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/integration/testkit"
)

func TestSilenceIsADrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testkit.Piped(t, func(w http.ResponseWriter, r *http.Request) {
			streams(text(1, "a"))(w, r)
			<-r.Context().Done()
		})
		began := time.Now()
		got := collect(t, remotehttp.New("http://x", &remotehttp.Options{Client: client}).Stream(t.Context(), "s", 0))
		require.ErrorIs(t, got.err, remote.ErrStreamDropped)
		require.NotErrorIs(t, got.err, context.Canceled, "nobody cancelled anything")
		require.EqualError(t, got.err, "remote: the stream broke off: silent for too long")
		require.Equal(t, []string{"a"}, got.texts)
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestHeartbeatsKeepAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testkit.Piped(t, func(w http.ResponseWriter, r *http.Request) {
			for range 40 {
				streams(": heartbeat\n\n")(w, r)
				time.Sleep(15 * time.Second)
			}
			streams(text(1, "a"), end)(w, r)
		})
		began := time.Now()
		got := collect(t, remotehttp.New("http://x", &remotehttp.Options{Client: client}).Stream(t.Context(), "s", 0))
		require.NoError(t, got.err)
		require.Equal(t, completed, got.last)
		require.Equal(t, 10*time.Minute, time.Since(began))
	})
}

func TestASlowConsumerIsNotSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testkit.Piped(t, func(w http.ResponseWriter, r *http.Request) { streams(text(1, "a"), text(2, "b"), end)(w, r) })
		var last remote.Event
		for e, err := range remotehttp.New("http://x", &remotehttp.Options{Client: client}).Stream(t.Context(), "s", 0) {
			require.NoError(t, err)
			time.Sleep(time.Hour)
			last = e
		}
		require.Equal(t, completed, last)
	})
}

func TestAServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		client := testkit.Piped(t, func(_ http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			<-r.Context().Done()
		})
		began := time.Now()
		h := remotehttp.New("http://x", &remotehttp.Options{Client: client, Idle: 10 * time.Second})
		_, err := h.Status(t.Context(), "s")
		require.ErrorIs(t, err, remote.ErrUnreachable)
		require.EqualError(t, err, "remote: the agent server does not answer: silent for too long")
		require.EqualValues(t, 4, calls.Load())
		require.Equal(t, (4*10+1+2+4)*time.Second, time.Since(began), "each retry waits twice as long")
	})
}

func TestTheClientsOwnTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testkit.Piped(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		client.Timeout = time.Second
		_, err := remotehttp.New("http://x", &remotehttp.Options{Client: client, MaxRetries: -1}).Status(t.Context(), "s")
		require.EqualError(t, err, "remote: the agent server does not answer: timed out")
		require.ErrorIs(t, err, remote.ErrUnreachable)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context continues")
	})
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := testkit.Piped(t, says(503, `{"error":"stopping","code":"UNAVAILABLE"}`))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		began := time.Now()
		err := remotehttp.New("http://x", &remotehttp.Options{Client: client}).Abort(ctx, "s", "")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "503 UNAVAILABLE: stopping", "why it had not succeeded by then")
		require.False(t, remote.Retryable(err))
		require.Equal(t, 5*time.Second, time.Since(began), "in the wait of 4 s")
	})
}

func TestAServerSaysHowLongToWait(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"":                     7 * time.Second, // 1, 2, 4
		"3":                    10 * time.Second,
		"120":                  6 * time.Minute,
		"121":                  0, // it is given up
		"9223372037":           0, // more nanoseconds than there are
		"18446744073709551616": 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			client := testkit.Piped(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Retry-After", header)
				says(503, `{"error":"stopping","code":"UNAVAILABLE"}`)(w, r)
			})
			began := time.Now()
			_, err := remotehttp.New("http://x", &remotehttp.Options{Client: client}).Status(t.Context(), "s")
			require.ErrorContains(t, err, "503 UNAVAILABLE")
			require.Equal(t, want, time.Since(began), header)
		})
	}
}

// away is a transport to a server that is never there.
type away struct {
	remote.Transport
	streams []time.Duration // when, from began
	began   time.Time
}

func (a *away) Stream(context.Context, string, uint64) iter.Seq2[remote.Event, error] {
	return func(yield func(remote.Event, error) bool) {
		a.streams = append(a.streams, time.Since(a.began))
		yield(nil, remote.ErrUnreachable)
	}
}

func (a *away) Status(context.Context, string) (remote.Status, error) {
	return remote.Status{Status: remote.StatusRunning}, nil
}

func TestFollowWaitsTwiceAsLongEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &away{began: time.Now()}
		got := collect(t, remote.Follow(t.Context(), a, "s", 0, remote.FollowOptions{}))
		require.ErrorIs(t, got.err, remote.ErrUnreachable)
		const ms = time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, a.streams)

		a = &away{began: time.Now()}
		collect(t, remote.Follow(t.Context(), a, "s", 0, remote.FollowOptions{Retries: 1000, RetryBase: time.Second}))
		require.Len(t, a.streams, 1+remote.MaxStreamRetries)
		n := len(a.streams)
		require.Equal(t, 30*time.Second, a.streams[n-1]-a.streams[n-2], "but not for ever")

		a = &away{began: time.Now()}
		cause := errors.New("the parent was stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(500*ms, func() { cancel(cause) })
		got = collect(t, remote.Follow(ctx, a, "s", 0, remote.FollowOptions{}))
		require.ErrorIs(t, got.err, cause)
		require.Equal(t, 500*ms, time.Since(a.began))
	})
}

// endless is a transport whose streams stop without a last event.
type endless struct{ away }

func (e *endless) Stream(context.Context, string, uint64) iter.Seq2[remote.Event, error] {
	return func(func(remote.Event, error) bool) {}
}

func TestAStreamThatJustStopsIsADrop(t *testing.T) {
	got := collect(t, remote.Follow(t.Context(), &endless{}, "s", 0, remote.FollowOptions{RetryBase: 1}))
	require.ErrorIs(t, got.err, remote.ErrStreamDropped)
	require.NotErrorIs(t, got.err, io.EOF)
}
