package integration_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/integration/testkit"
)

// TestJS runs the tests of httpapi/js against a daemon. It needs node, what `make js`
// builds, and the AI SDK's versions that `make aisdk` installs.
func TestJS(t *testing.T) {
	t.Parallel() // most of it is waiting
	testkit.With(t, "HELIX_JS", "jstest")
	d := newDaemon(t, "dev", "--data-dir", t.TempDir(), "--nats-listen", freeAddress(t))
	d.start()
	node := exec.CommandContext(t.Context(), "node", "--test", "test/")
	node.Dir = "../httpapi/js"
	node.Env = append(os.Environ(), "HELIX_URL="+d.url)
	out, err := node.CombinedOutput()
	require.NoError(t, err, string(out))
}
