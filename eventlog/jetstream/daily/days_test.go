package daily_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/daily"
)

func serve(t *testing.T) *embed.Server {
	t.Helper()
	return embedtest.Server(t, embed.Options{SyncInterval: time.Minute})
}

// Nodes that change one value concurrently lose no change.
func TestNodesChangeAValue(t *testing.T) {
	srv := serve(t)
	nc, err := srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	var all sync.WaitGroup
	for node := range 4 {
		days := daily.New(nc, 0, nil)
		all.Go(func() {
			for range 25 {
				for saved := false; !saved; {
					value, revision, err := days.Load(t.Context(), "2026-01-01.a")
					if err == nil {
						saved, err = days.Save(t.Context(), "2026-01-01.a", append(value, byte('0'+node)), revision)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	days := daily.New(nc, 0, nil)
	value, revision, err := days.Load(t.Context(), "2026-01-01.a")
	require.NoError(t, err)
	count := map[byte]int{}
	for _, c := range value {
		count[c]++
	}
	require.Equal(t, map[byte]int{'0': 25, '1': 25, '2': 25, '3': 25}, count)

	saved, err := days.Save(t.Context(), "2026-01-01.a", nil, revision-1)
	require.NoError(t, err)
	require.False(t, saved, "it has another revision")
	saved, err = days.Save(t.Context(), "2026-01-01.a", nil, 0)
	require.NoError(t, err)
	require.False(t, saved, "it is there")
	value, revision, err = days.Load(t.Context(), "2026-01-02.a")
	require.NoError(t, err)
	require.Nil(t, value)
	require.Zero(t, revision)

	for n := range 3 { // one message a key
		saved, err = days.Save(t.Context(), fmt.Sprintf("2026-01-0%d.b", n), []byte("x"), 0)
		require.NoError(t, err)
		require.True(t, saved)
	}
	s, err := js.Stream(t.Context(), daily.Stream)
	require.NoError(t, err)
	require.Equal(t, uint64(4), s.CachedInfo().State.Msgs)
	require.Positive(t, s.CachedInfo().Config.MaxAge, "old days expire")
	require.False(t, s.CachedInfo().Config.AllowDirect)
}

// A deployment without tenants' limits has no stream of them; a stream that can't be
// reached is reported.
func TestTheStreamIsMadeWhenItIsUsed(t *testing.T) {
	srv := serve(t)
	nc, err := srv.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc)
	require.NoError(t, err)
	days := daily.New(nc, 1, nil)
	_, err = js.Stream(t.Context(), daily.Stream)
	require.ErrorIs(t, err, natsjs.ErrStreamNotFound)
	_, _, err = days.Load(t.Context(), "2026-01-01.a")
	require.NoError(t, err)
	_, err = js.Stream(t.Context(), daily.Stream)
	require.NoError(t, err)
	nc.Close()
	_, _, err = days.Load(t.Context(), "2026-01-01.a")
	require.ErrorIs(t, err, eventlog.ErrUnavailable)
	_, err = days.Save(t.Context(), "2026-01-01.a", nil, 0)
	require.ErrorIs(t, err, eventlog.ErrUnavailable)
}
