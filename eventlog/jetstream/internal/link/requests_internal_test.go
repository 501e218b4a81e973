package link

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
)

func TestRequestsEndWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	l := openLink(t)
	none := &nats.Msg{Subject: "nobody.answers"}
	_, err := l.Request(t.Context(), none, time.Second)
	require.ErrorIs(t, err, nats.ErrNoResponders)

	silent, err := l.Conn.SubscribeSync("silent")
	require.NoError(t, err)
	defer silent.Unsubscribe() //nolint:errcheck // fails only on a closed connection
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	_, err = l.Request(ctx, &nats.Msg{Subject: "silent"}, time.Minute)
	require.ErrorIs(t, err, context.Canceled)

	l.alone = false // an answer may be lost
	_, err = l.Request(t.Context(), &nats.Msg{Subject: "silent"}, 20*time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout)
	require.Empty(t, l.requests.waiting)
	require.Empty(t, none.Reply)
}

// A server that is alone loses no answer: only the loss of the connection does.
func TestARequestOfAServerThatIsAloneEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	l := openLink(t)
	_, err := l.Conn.SubscribeSync("silent")
	require.NoError(t, err)
	require.True(t, l.late(time.Minute, time.Second, l.Reconnected()))
	require.False(t, l.late(2*time.Second, time.Second, l.Reconnected()))
	done := make(chan error, 1)
	go func() {
		_, err := l.Request(t.Context(), &nats.Msg{Subject: "silent"}, time.Millisecond)
		done <- err
	}()
	require.Eventually(t, func() bool {
		l.requests.mu.Lock()
		defer l.requests.mu.Unlock()
		return len(l.requests.waiting) > 0
	}, time.Minute, time.Millisecond)
	require.NoError(t, l.Conn.ForceReconnect())
	require.ErrorIs(t, <-done, nats.ErrTimeout)
}

// A caller does not wait for an answer that a closed log would not receive.
func TestCloseEndsRequests(t *testing.T) {
	t.Parallel()
	l := openLink(t)
	silent, err := l.Conn.SubscribeSync("silent")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	ask := func() error {
		_, err := l.Request(ctx, &nats.Msg{Subject: "silent"}, time.Minute)
		return err
	}
	done := make(chan error, 1)
	go func() { done <- ask() }()
	_, err = silent.NextMsgWithContext(ctx)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-done, nats.ErrConnectionClosed)
	require.ErrorIs(t, ask(), nats.ErrConnectionClosed)
	require.False(t, l.Conn.IsClosed())
}

func openLink(t *testing.T) *Link {
	t.Helper()
	l, err := New(t.Context(), storetest.Connect(t), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	l.WatchConnection()
	return l
}
