package live

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
	"github.com/helixd/helixd/eventlog/jetstream/internal/maintenance"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
	"github.com/helixd/helixd/integration/deployment"
)

// On three replicas a follower receives a last record whose live message was lost while
// the stream changed its leader.
func TestALostLastRecordIsFoundAfterALeaderChange(t *testing.T) {
	if testing.Short() {
		t.Skip("a cluster takes its time")
	}
	t.Parallel()
	addresses, err := deployment.FreeAddresses(3)
	require.NoError(t, err)
	var routes []string
	for _, address := range addresses {
		routes = append(routes, "nats://"+address)
	}
	var logs [3]*followed
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for i, address := range addresses {
		wg.Go(func() {
			srv, err := embed.Start(t.Context(), embed.Options{
				DataDir: t.TempDir(), Name: fmt.Sprint("n", i), Cluster: &embed.Cluster{Listen: address, Routes: routes},
			})
			if err != nil {
				errs[i] = err
				return
			}
			t.Cleanup(srv.Stop)
			nc, err := srv.Connect()
			if err != nil {
				errs[i] = err
				return
			}
			t.Cleanup(nc.Close)
			l, err := maintenance.Open(t.Context(), nc, link.Options{Partitions: 1, Replicas: 3})
			if err != nil {
				errs[i] = err
				return
			}
			t.Cleanup(func() { l.Close() })
			logs[i] = &followed{l, New(l.Store)}
			logs[i].live.Start()
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	head := storetest.Appended(t, logs[0], "s", 0, storetest.TextEntries("x", 1))
	heard := deafened(t, logs[1], head-1)
	_, err = logs[2].Conn.Request("$JS.API.STREAM.LEADER.STEPDOWN."+layout.LogStream(0), nil, 10*time.Second)
	require.NoError(t, err)
	head, err = eventlog.AppendOnce(t.Context(), logs[0], "s", "lost", head, storetest.TextEntries("y", 1))
	require.NoError(t, err)
	began := time.Now()
	require.Equal(t, head, (<-heard).Sequence)
	t.Logf("heard after %v", time.Since(began))
}
