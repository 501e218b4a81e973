package objects_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/helixd/helixd/agentloop/workspace"
	"github.com/helixd/helixd/agentloop/workspace/objects"
	"github.com/helixd/helixd/agentloop/workspace/workspacetest"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/embed/embedtest"
	"github.com/helixd/helixd/integration/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.InMemory(m)) }

// server starts its own server.
func server(t *testing.T, dir string) *nats.Conn {
	t.Helper()
	_, nc := embedtest.Start(t, embed.Options{DataDir: dir, SyncInterval: time.Second})
	return nc
}

func open(t *testing.T, nc *nats.Conn, o objects.Options) *objects.Provider {
	t.Helper()
	p, err := objects.Open(t.Context(), nc, &o)
	require.NoError(t, err)
	return p
}

func TestContract(t *testing.T) {
	workspacetest.Run(t, func(t *testing.T) workspace.Provider {
		return open(t, server(t, t.TempDir()), objects.Options{MaxBytes: 1 << 20})
	})
}

// Acknowledgements that are lost do not add up until nothing can be written.
func TestLostAcknowledgementsAreGivenUp(t *testing.T) {
	nc := server(t, t.TempDir())
	js, err := objects.NewJetStream(nc, 20*time.Millisecond)
	require.NoError(t, err)
	_, err = nc.SubscribeSync("nobody.answers") // without a subscriber the server would
	require.NoError(t, err)
	ack, err := js.PublishAsync("nobody.answers", nil)
	require.NoError(t, err)
	require.ErrorIs(t, <-ack.Err(), natsjs.ErrAsyncPublishTimeout)
	require.Zero(t, js.PublishAsyncPending())
}
