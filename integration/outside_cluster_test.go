package integration_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/helixd/helixd/integration/testkit"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// Three nodes on a NATS cluster that is not theirs, in operator mode, with
// credentials of the least rights, and TLS to clients and between the servers: a
// session of one node is read at another, and outlives its node and a server.
func TestThreeNodesOnAnOutsideClusterWithCredentialsAndTLS(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	testkit.Cluster(t)
	d := newOperated(t)
	var routes, listen []string
	for range clusterSize {
		address := freeAddress(t)
		listen, routes = append(listen, address), append(routes, `"nats://`+address+`"`)
	}
	cert, key := filepath.Join(d.dir, "cert.pem"), filepath.Join(d.dir, "key.pem")
	var servers []*server.Server
	var urls []string
	for i, address := range listen {
		s := d.server(t, fmt.Sprint("n", i), fmt.Sprintf(
			"cluster { name: outside, listen: %q, routes: [%s], tls { cert_file: %q, key_file: %q, ca_file: %[3]q, verify: true } }\n",
			address, strings.Join(routes, ", "), cert, key))
		servers, urls = append(servers, s), append(urls, s.ClientURL())
	}
	waitForLeader(t, servers)
	nodes := outsideNodes(t, strings.Join(urls, ","), 3, "HELIX_NATS_CREDENTIALS="+d.creds, "HELIX_NATS_TLS_CA="+cert)
	_, ready := nodes[2].get("/readyz")
	require.Equal(t, "replicated×3", ready["durability"])

	nodes[0].ok("/start", map[string]any{"sessionId": "s", "agentType": "stroller", "message": "go"})
	require.Eventually(t, func() bool {
		_, s := nodes[1].get("/status?sessionId=s")
		return s["isExecuting"] == true
	}, time.Minute, time.Millisecond)
	nodes[0].kill()
	servers[0].Shutdown()
	servers[0].WaitForShutdown()
	nodes[1].waitFor("s", "completed")
	_, snapshot := nodes[2].get("/chat/s/snapshot")
	require.Contains(t, fmt.Sprint(snapshot["messages"]), "Now I have arrived.")
}
