package embed

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/deployment"
)

// looked is a server whose disk has as much room as the test says.
func looked(t *testing.T, minFree int64) (*Server, func(free uint64)) {
	t.Helper()
	address, err := deployment.FreeAddress() // which no connection takes while the server restarts
	require.NoError(t, err)
	s, err := Start(t.Context(), Options{DataDir: t.TempDir(), MinFree: minFree, Listen: address})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	s.disk.end() // who looks is the test
	var room atomic.Uint64
	s.disk.free = func() (uint64, bool) { return room.Load(), true }
	return s, func(free uint64) {
		room.Store(free)
		s.disk.look(context.Background())
	}
}

func TestRefuses(t *testing.T) {
	const mib = 1 << 20
	for name, tc := range map[string]struct {
		minFree   int64
		free      []uint64 // look after look
		low, dire bool     // refuses what stores, and even what frees
	}{
		"much room":                 {100 * mib, []uint64{200 * mib}, false, false},
		"exactly enough":            {100 * mib, []uint64{100 * mib}, false, false},
		"little":                    {100 * mib, []uint64{99 * mib}, true, false},
		"too little to make room":   {100 * mib, []uint64{49 * mib}, true, true},
		"the reserve is bounded":    {1000 * mib, []uint64{65 * mib}, true, false},
		"less than that":            {1000 * mib, []uint64{63 * mib}, true, true},
		"not yet enough again":      {100 * mib, []uint64{10 * mib, 105 * mib}, true, false},
		"enough again":              {100 * mib, []uint64{10 * mib, 110 * mib}, false, false},
		"full":                      {100 * mib, []uint64{0}, true, true},
		"full, and not enough room": {100 * mib, []uint64{0, 105 * mib}, true, true},
		"full, and room again":      {100 * mib, []uint64{0, math.MaxUint64}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, look := looked(t, tc.minFree)
			for _, free := range tc.free {
				look(free)
			}
			require.Equal(t, tc.low, s.Refuses(false) != "", s.Refuses(false))
			require.Equal(t, tc.dire, s.Refuses(true) != "", s.Refuses(true))
		})
	}
}

// A server that met a full disk restarts: with what was stored, at the same
// address, and with the connections that were there.
func TestBeginsAnewBehindAFullDisk(t *testing.T) {
	t.Parallel()
	s, look := looked(t, 1<<20)
	nc, err := s.Connect()
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := natsjs.New(nc, natsjs.WithDefaultTimeout(time.Minute))
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), natsjs.StreamConfig{Name: "S", Subjects: []string{"s"}})
	require.NoError(t, err)
	_, err = js.Publish(t.Context(), "s", []byte("kept"))
	require.NoError(t, err)
	url := s.ClientURL()

	require.NoError(t, s.instance().srv.ShutdownJetStream(), "as it does itself")
	look(0)
	require.NotEmpty(t, s.Refuses(true))
	look(1 << 30)
	require.Empty(t, s.Refuses(false))
	require.Equal(t, url, s.ClientURL())
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ack, err := js.Publish(ctx, "s", []byte("more"))
		return err == nil && ack.Sequence >= 2
	}, time.Minute, 10*time.Millisecond)
	stream, err := js.Stream(t.Context(), "S")
	require.NoError(t, err)
	m, err := stream.GetMsg(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, "kept", string(m.Data))
}

// What clients call themselves says nothing about the disk.
func TestClientsCantFillTheDiskByName(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{DataDir: t.TempDir(), Listen: "127.0.0.1:0", MinFree: 1})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	before := s.instance()
	const name = noRoom + outOf + disabled
	_, err = nats.Connect(s.ClientURL(), nats.Name(name), nats.UserInfo(name, name))
	require.Error(t, err)
	nc, err := nats.Connect(s.ClientURL(), nats.Name(name))
	if err == nil {
		nc.Publish("helix.log.0.x", nil) //nolint:errcheck // it may not
		nc.Flush()                       //nolint:errcheck
		nc.Close()
	}
	s.disk.look(t.Context())
	require.Empty(t, s.Refuses(false))
	require.Same(t, before, s.instance())

	require.True(t, tellsFull("Error writing to stream: %v", []any{fmt.Errorf("write x: %w", syscall.ENOSPC)}))
	require.True(t, tellsFull(outOf+"%s resources"+disabled, []any{"File"}))
	require.False(t, tellsFull(name, []any{name}))
}

func TestWithoutMinFreeNobodyLooks(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{DataDir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	require.Nil(t, s.disk)
	require.Empty(t, s.Refuses(false))
}
