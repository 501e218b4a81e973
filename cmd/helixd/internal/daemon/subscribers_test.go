package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/httpapi/api"
)

func TestWhoMakesRights(t *testing.T) {
	seed, err := subscriber.NewKey()
	require.NoError(t, err)
	given, err := subscriber.New(seed, nil)
	require.NoError(t, err)
	key := func(c *config.Config) { c.NATS.Subscribers.SigningKey = config.NewSecret(seed) }
	listens := func(c *config.Config) { c.NATS.Listen = "127.0.0.1:0" }
	clustered := func(c *config.Config) { c.NATS.Cluster.Listen = "127.0.0.1:6222" }
	outside := func(c *config.Config) { c.NATS.URL = "nats://h" }
	const nobody, own, theGiven = "nobody", "its own key", "the given key"
	for _, tc := range []struct {
		name    string
		changes []func(*config.Config)
		want    string
	}{
		{"nobody can connect", nil, nobody},
		{"nobody can connect, with a key", []func(*config.Config){key}, nobody},
		{"one server", []func(*config.Config){listens}, own},
		{"one server, by WebSocket", []func(*config.Config){func(c *config.Config) { c.NATS.WebSocket.Listen = "127.0.0.1:0" }}, own},
		{"one server, with a key", []func(*config.Config){listens, key}, theGiven},
		{"a cluster", []func(*config.Config){listens, clustered}, nobody},
		{"a cluster, with a key", []func(*config.Config){listens, clustered, key}, theGiven},
		{"a deployment", []func(*config.Config){outside}, nobody},
		{"a deployment, with a key", []func(*config.Config){outside, key}, theGiven},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := config.Default()
			c.DataDir = filepath.Join(t.TempDir(), "not", "yet", "there")
			for _, change := range tc.changes {
				change(c)
			}
			m, err := minterOf(c)
			require.NoError(t, err)
			path := filepath.Join(c.DataDir, subscribersFile)
			if tc.want != own {
				require.NoFileExists(t, path)
			}
			switch tc.want {
			case nobody:
				require.Nil(t, m)
				require.Nil(t, subscriberKeys(m))
				require.Nil(t, subscribing(m, nil, c.NATS.Subscribers))
			case theGiven:
				require.Equal(t, []string{given.PublicKey()}, subscriberKeys(m))
			case own:
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.EqualValues(t, 0o600, info.Mode().Perm())
				again, err := minterOf(c)
				require.NoError(t, err)
				require.Equal(t, m.PublicKey(), again.PublicKey(), "rights outlive a restart")
				files, err := os.ReadDir(c.DataDir)
				require.NoError(t, err)
				require.Len(t, files, 1)
			}
		})
	}
}

func TestTheEmbeddedServerHasItsOwnAccounts(t *testing.T) {
	c := config.Default()
	c.NATS.Subscribers.Account = "A"
	_, err := minterOf(c)
	require.ErrorContains(t, err, "nats.subscribers.account: needs nats.url")
}

func TestABrokenKeyIsNotReplaced(t *testing.T) {
	c := config.Default()
	c.DataDir, c.NATS.Listen = t.TempDir(), "127.0.0.1:0"
	path := filepath.Join(c.DataDir, subscribersFile)
	require.NoError(t, os.WriteFile(path, []byte("SABROKEN"), 0o600))
	_, err := minterOf(c)
	require.ErrorContains(t, err, path)
	require.NotContains(t, err.Error(), "SABROKEN")
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "SABROKEN", string(raw))
}

func TestWhereSubscribersConnect(t *testing.T) {
	c := config.Default()
	c.DataDir, c.NATS.Listen = t.TempDir(), "127.0.0.1:0"
	m, err := minterOf(c)
	require.NoError(t, err)
	for _, tc := range []struct {
		urls, known []string
		want        api.SubscriptionURLs
	}{
		{nil, []string{"", ""}, api.SubscriptionURLs{}},
		{nil, []string{"nats://h:4222", "ws://h:8443"}, api.SubscriptionURLs{NATS: []string{"nats://h:4222"}, WebSocket: []string{"ws://h:8443"}}},
		{[]string{"wss://x/nats", "tls://x"}, []string{"nats://0.0.0.0:4222", ""}, api.SubscriptionURLs{NATS: []string{"tls://x"}, WebSocket: []string{"wss://x/nats"}}},
	} {
		sub, err := subscribing(m, nil, config.Subscribers{URLs: tc.urls}, tc.known...)(t.Context(), "s", 0)
		require.NoError(t, err)
		require.Equal(t, tc.want, sub.URLs)
		require.Equal(t, "helix.live.s", sub.Subject)
		require.Contains(t, sub.Creds, sub.JWT)
	}
	// What the API takes, the minter makes.
	require.Equal(t, []time.Duration{subscriber.MinTTL, subscriber.MaxTTL}, []time.Duration{api.MinSubscription, api.MaxSubscription})
}
