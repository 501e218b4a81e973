package jetstream

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func TestRequestsEndWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	none := &nats.Msg{Subject: "nobody.answers"}
	_, err := l.request(t.Context(), none, time.Second)
	require.ErrorIs(t, err, nats.ErrNoResponders)

	silent, err := l.nc.SubscribeSync("silent")
	require.NoError(t, err)
	defer silent.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = l.request(ctx, &nats.Msg{Subject: "silent"}, time.Minute)
	require.ErrorIs(t, err, context.Canceled)

	l.alone = false // an answer may be lost
	_, err = l.request(t.Context(), &nats.Msg{Subject: "silent"}, 20*time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout)
	require.Empty(t, l.requests.waiting)
	require.Empty(t, none.Reply)
}

// A server that is alone loses no answer: only the loss of the connection does.
func TestARequestOfAServerThatIsAloneEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	l := openLog(t, nil)
	_, err := l.nc.SubscribeSync("silent")
	require.NoError(t, err)
	require.True(t, l.late(time.Minute, time.Second, l.reconnected()))
	require.False(t, l.late(2*time.Second, time.Second, l.reconnected()))
	done := make(chan error, 1)
	go func() {
		_, err := l.request(t.Context(), &nats.Msg{Subject: "silent"}, time.Millisecond)
		done <- err
	}()
	require.Eventually(t, func() bool {
		l.requests.mu.Lock()
		defer l.requests.mu.Unlock()
		return len(l.requests.waiting) > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, l.nc.ForceReconnect())
	require.ErrorIs(t, <-done, nats.ErrTimeout)
}
