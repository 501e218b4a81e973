package streams

import (
	"context"
	"testing"

	natsjs "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/internal/link"
)

// halfMade is a cluster in which another node's stream has a name and no leader.
type halfMade struct {
	natsjs.JetStream
	created error // what it answers to a request to create the stream
}

func (h halfMade) CreateStream(context.Context, natsjs.StreamConfig) (natsjs.Stream, error) {
	return nil, h.created
}

func (halfMade) Stream(context.Context, string) (natsjs.Stream, error) {
	return nil, natsjs.ErrStreamNotFound
}

// TestAStreamThatIsBeingMadeIsWaitedFor: if nodes start together, one creates a stream,
// and the others must not fail because they can't find it yet.
func TestAStreamThatIsBeingMadeIsWaitedFor(t *testing.T) {
	for _, created := range []error{natsjs.ErrStreamNameAlreadyInUse, natsjs.ErrStreamNotFound} {
		_, err := CreateOrFind(t.Context(), halfMade{created: created}, natsjs.StreamConfig{Name: "S"})
		require.Error(t, err)
		require.True(t, link.IsUnsettled(err), "%v", err)
	}
	require.False(t, link.IsUnsettled(natsjs.ErrStreamNotFound))
}
