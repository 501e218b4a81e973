package streams

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
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

// leaderless is a cluster whose first answer is that there is no leader.
type leaderless struct {
	natsjs.JetStream
	asked int
}

func (l *leaderless) UpdateStream(_ context.Context, c natsjs.StreamConfig) (natsjs.Stream, error) {
	if l.asked++; l.asked == 1 {
		return nil, &natsjs.APIError{Code: 503, ErrorCode: 10008, Description: "JetStream system temporarily unavailable"}
	}
	return found{config: c}, nil
}

// found is a stream with a configuration.
type found struct {
	natsjs.Stream
	config natsjs.StreamConfig
}

func (f found) CachedInfo() *natsjs.StreamInfo { return &natsjs.StreamInfo{Config: f.config} }

// TestAnOlderLogIsUpdatedWhenTheClusterHasALeader: Open waits for a cluster that has just
// started, also if it has to change a stream.
func TestAnOlderLogIsUpdatedWhenTheClusterHasALeader(t *testing.T) {
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT},
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	require.True(t, srv.ReadyForConnections(time.Minute))
	nc, err := nats.Connect(srv.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js := &leaderless{}
	l := &Set{Link: &link.Link{Conn: nc, JS: js}}
	want := natsjs.StreamConfig{Name: "S", Metadata: map[string]string{metadataPartitions: "1 v2"}}
	s, err := l.update(t.Context(), found{config: natsjs.StreamConfig{Name: "S", Metadata: map[string]string{metadataPartitions: "1"}}}, want)
	require.NoError(t, err)
	require.Equal(t, 2, js.asked)
	require.Equal(t, "1 v2", s.CachedInfo().Config.Metadata[metadataPartitions])
}
