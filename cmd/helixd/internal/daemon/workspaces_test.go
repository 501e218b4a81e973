package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/agentloop/workspace/objects"
)

// TestHasObjects: a node finds workspaces that have no leader yet, and does not wait for an answer
// that it may not get. A subscriber answers in JetStream's place.
func TestHasObjects(t *testing.T) {
	t.Parallel()
	const request = "$JS.API.STREAM.INFO." + objects.Stream
	srv, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: server.RANDOM_PORT},
		Users: []*server.User{{Username: "all", Password: "p"}, {Username: "few", Password: "p", Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Deny: []string{request}},
		}}},
	})
	require.NoError(t, err)
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	require.True(t, srv.ReadyForConnections(time.Minute))
	as := func(user string) *nats.Conn {
		nc, err := nats.Connect(srv.ClientURL(), nats.UserInfo(user, "p"), nats.ErrorHandler(natsErrors(slog.New(slog.DiscardHandler))))
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		return nc
	}
	all, log := as("all"), slog.New(slog.DiscardHandler)
	var asked atomic.Int32
	answer := ""
	_, err = all.Subscribe(request, func(m *nats.Msg) {
		if asked.Add(1) <= 2 {
			_ = m.Respond([]byte(`{"type":"io.nats.jetstream.api.v1.stream_info_response","error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`))
			return
		}
		_ = m.Respond([]byte(answer))
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	answer = `{"type":"io.nats.jetstream.api.v1.stream_info_response","config":{"name":"` + objects.Stream + `"}}`
	require.True(t, hasObjects(ctx, all, log))
	require.EqualValues(t, 3, asked.Load())
	answer = `{"type":"io.nats.jetstream.api.v1.stream_info_response","error":{"code":404,"err_code":10059,"description":"stream not found"}}`
	require.False(t, hasObjects(ctx, all, log))
	require.EqualValues(t, 4, asked.Load())

	require.False(t, hasObjects(ctx, as("few"), log))
	require.NoError(t, ctx.Err(), "it waits for no answer that can't come")
}
