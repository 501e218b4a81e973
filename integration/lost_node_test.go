package integration_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/helixd/helixd/integration/testkit"
	"github.com/stretchr/testify/require"
)

// doctorSays waits until helixd doctor prints a text about the daemon.
func (n *node) doctorSays(want string) (out string) {
	n.t.Helper()
	path := program(n.t)
	require.Eventually(n.t, func() bool {
		raw, _ := exec.Command(path, "doctor", "--server", n.url, "--token", "t0ken").CombinedOutput()
		out = string(raw)
		return strings.Contains(out, want)
	}, clusterPatience, 100*time.Millisecond, "doctor does not say %q", want)
	return out
}

// A dead node of an embedded cluster is found by /readyz and helixd doctor while
// the others serve; without a quorum the advice is to start the others.
func TestALostNodeIsNoticed(t *testing.T) {
	testkit.Long(t)
	t.Parallel() // most of it is waiting
	nodes := newNodes(t)
	startAll(nodes[:])
	nodes[1].doctorSays("3 of each record, all servers are there")

	nodes[0].kill()
	var replicas struct {
		Wanted, Present int
		Missing         []string
	}
	require.Eventually(t, func() bool {
		raw, err := json.Marshal(nodes[1].ready()["replicas"])
		return err == nil && json.Unmarshal(raw, &replicas) == nil && replicas.Present == 2
	}, clusterPatience, 100*time.Millisecond)
	require.Equal(t, 3, replicas.Wanted)
	require.Len(t, replicas.Missing, 1)
	out := nodes[1].doctorSays("replicated×3, but only 2 of 3 servers are there; missing: " + replicas.Missing[0])
	require.Contains(t, out, "problem  replicas")
	require.Contains(t, out, "-> start the missing node, or replace it")

	nodes[2].kill()
	out = nodes[1].doctorSays("the quorum is lost")
	require.Contains(t, out, "-> start the nodes that are down: more than half of them must run")

	nodes[0].launch()
	nodes[2].launch()
	nodes[1].doctorSays("3 of each record, all servers are there")
	for _, n := range nodes { // servers are there before their nodes have begun
		n.ready()
	}
	for _, n := range nodes {
		n.stop()
	}
}
