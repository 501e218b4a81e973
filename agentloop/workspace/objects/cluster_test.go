package objects_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// cluster starts three servers.
func cluster(t *testing.T) (servers [3]*embed.Server, connections [3]*nats.Conn) {
	t.Helper()
	testkit.Cluster(t)
	var nodes [3]embed.Options
	addresses, err := deployment.FreeAddresses(len(nodes))
	require.NoError(t, err)
	var routes []string
	for i, address := range addresses {
		nodes[i] = embed.Options{
			DataDir: t.TempDir(), Name: fmt.Sprint("n", i), Cluster: &embed.Cluster{Listen: address},
		}
		routes = append(routes, "nats://"+address)
	}
	var wg sync.WaitGroup
	for i := range nodes {
		nodes[i].Cluster.Routes = routes
		wg.Go(func() {
			var err error
			if servers[i], err = embed.Start(t.Context(), nodes[i]); err == nil {
				connections[i], err = servers[i].Connect()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for i := range nodes {
			if connections[i] != nil {
				connections[i].Close()
			}
			if servers[i] != nil {
				servers[i].Stop()
			}
		}
	})
	require.False(t, t.Failed())
	return servers, connections
}

// TestFilesSurviveTheLossOfAServer: what was acknowledged is on another node
// when one stops, and is written on there.
func TestFilesSurviveTheLossOfAServer(t *testing.T) {
	servers, connections := cluster(t)
	w, ref, err := open(t, connections[0], objects.Options{Replicas: 3}).Open(t.Context(), workspacetest.Session)
	require.NoError(t, err)
	other := open(t, connections[1], objects.Options{Replicas: 3})
	beside, err := other.Resolve(t.Context(), workspacetest.Session, ref)
	require.NoError(t, err)
	var wg sync.WaitGroup
	want := map[string]string{}
	for i := range 10 {
		want[fmt.Sprint("first ", i)], want[fmt.Sprint("second ", i)] = "1", "2"
	}
	wg.Go(func() {
		for i := range 10 {
			if err := w.FS().WriteFile(t.Context(), fmt.Sprint("first ", i), []byte("1")); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Go(func() {
		for i := range 10 {
			if err := beside.FS().WriteFile(t.Context(), fmt.Sprint("second ", i), []byte("2")); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	require.Equal(t, want, workspacetest.Files(t, beside))
	s, err := w.Snapshots().Take(t.Context())
	require.NoError(t, err)
	connections[0].Close()
	servers[0].Stop()

	require.Eventually(t, func() bool { // a busy machine's elections may take longer than a call does
		return beside.FS().WriteFile(t.Context(), "after", []byte("3")) == nil
	}, 2*time.Minute, time.Millisecond)
	require.NoError(t, beside.Snapshots().Restore(t.Context(), s))
	require.Equal(t, want, workspacetest.Files(t, beside))
}
