package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/integration/deployment"
	"github.com/helixd/helixd/integration/testkit"
)

// Cluster returns the options of n servers that form a cluster when they are started. It
// leaves the test out of a short run.
func Cluster(t testing.TB, n int) (nodes []embed.Options) {
	t.Helper()
	testkit.Cluster(t)
	addresses, err := deployment.FreeAddresses(n)
	require.NoError(t, err)
	var routes []string
	for _, address := range addresses {
		routes = append(routes, "nats://"+address)
	}
	for i, address := range addresses { // its own route, too
		nodes = append(nodes, embed.Options{
			DataDir: t.TempDir(), Name: fmt.Sprint("n", i), Cluster: &embed.Cluster{Listen: address, Routes: routes},
		})
	}
	return nodes
}

// StartCluster starts n servers that form a cluster, and opens a log on each, all at the
// same time. The servers and their connections end with the test; open registers the log's end.
func StartCluster[L any](t testing.TB, n int, open func(*embed.Server, *nats.Conn) (L, error)) []L {
	t.Helper()
	logs, errs := make([]L, n), make([]error, n)
	var all sync.WaitGroup
	for i, options := range Cluster(t, n) {
		all.Go(func() {
			srv, err := embed.Start(t.Context(), options)
			if errs[i] = err; err != nil {
				return
			}
			t.Cleanup(srv.Stop)
			nc, err := srv.Connect()
			if errs[i] = err; err != nil {
				return
			}
			t.Cleanup(nc.Close)
			logs[i], errs[i] = open(srv, nc)
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return logs
}
