package jetstream

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/internal/storetest"
	"github.com/helixd/helixd/integration/deployment"
)

func TestOpenRefusesAnOldServerByName(t *testing.T) {
	for version, want := range map[string]string{
		"2.14.3": "server version 2.14.3 is too old: nats-server 2.15.2 or later is needed",
		"custom": `server version "custom" is not understood: nats-server 2.15.2 or later is needed`,
	} {
		nc, err := nats.Connect(storetest.OldServer(t, version))
		require.NoError(t, err)
		t.Cleanup(nc.Close) // before its server ends
		for _, o := range []*Options{nil, {ReadOnly: true}} {
			_, err = Open(t.Context(), nc, o)
			require.ErrorContains(t, err, want)
		}
	}
}

// A cluster may have a server that is too old besides good ones: appends through it are
// refused, and reading continues once a good one is back.
func TestReconnectToAnOldServer(t *testing.T) {
	t.Parallel()
	address, err := deployment.FreeAddress() // an address that stays free while the server is down
	require.NoError(t, err)
	options := embed.Options{DataDir: t.TempDir(), Listen: address, User: "u", Password: "p"}
	srv, err := embed.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { srv.Stop() })
	reconnected := make(chan string, 16)
	nc, err := nats.Connect(srv.ClientURL()+","+storetest.OldServer(t, "2.11.4"), nats.UserInfo("u", "p"), nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.ReconnectWait(time.Millisecond), nats.ReconnectHandler(func(nc *nats.Conn) { reconnected <- nc.ConnectedServerVersion() }))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := Open(t.Context(), nc, nil)
	require.NoError(t, err)
	t.Cleanup(func() { log.Close() })
	entry := eventlog.Entry{Envelope: eventlog.Envelope{Kind: eventlog.KindFact, Type: "x", Agent: "s"}, Payload: []byte("{}")}
	_, err = log.Append(t.Context(), "s", 0, []eventlog.Entry{entry})
	require.NoError(t, err)
	require.Empty(t, log.Info().Refuses)

	srv.Stop()
	require.Equal(t, "2.11.4", <-reconnected)
	_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{entry})
	require.ErrorContains(t, err, "server version 2.11.4 is too old")
	require.NotErrorIs(t, err, eventlog.ErrOutcomeUnknown, "nothing was sent")
	require.Contains(t, log.Info().Refuses, "server version 2.11.4 is too old")

	srv, err = embed.Start(t.Context(), options)
	require.NoError(t, err)
	require.NoError(t, nc.ForceReconnect())
	for <-reconnected == "2.11.4" {
		require.NoError(t, nc.ForceReconnect())
	}
	_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{entry})
	require.NoError(t, err)
	require.Empty(t, log.Info().Refuses)
}
