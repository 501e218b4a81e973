package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

func TestLoadSubscribers(t *testing.T) {
	seed, err := subscriber.NewKey()
	require.NoError(t, err)
	m, err := subscriber.New(seed, nil)
	require.NoError(t, err)
	c, err := loadText(t, `
nats:
  url: nats://h
  subscribers: {signingKey: env:KEY, account: `+m.PublicKey()+`, ttl: 30m, urls: ["tls://h:4222", "wss://h/nats"]}
`, env{"KEY": seed})
	require.NoError(t, err)
	assert.Equal(t, Subscribers{
		SigningKey: NewSecret(seed), Account: m.PublicKey(), TTL: 30 * time.Minute, URLs: []string{"tls://h:4222", "wss://h/nats"},
	}, c.NATS.Subscribers)
	assert.NotContains(t, c.String(), seed)
	assert.Equal(t, time.Hour, Default().NATS.Subscribers.TTL)
}

func TestBadSubscribers(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"key", "nats:\n  subscribers: {signingKey: SAX}\n", "helix.yaml:2: nats.subscribers.signingKey: must be the seed of an account's key (SA…)"},
		{"account", "nats:\n  url: h\n  subscribers: {account: x}\n", "helix.yaml:3: nats.subscribers.account: must be the public key of an account (A…)\n" +
			"helix.yaml:3: nats.subscribers: needs a signingKey for the account"},
		{"ttl", "nats:\n  subscribers: {ttl: 25h}\n", "helix.yaml:2: nats.subscribers.ttl: must be from 1s to 24h"},
		{"no ttl", "nats:\n  subscribers: {ttl: 0s}\n", "helix.yaml:2: nats.subscribers.ttl: must be from 1s to 24h"},
		{"address", "nats:\n  subscribers:\n    urls: ['nats://h', h]\n", "helix.yaml:3: nats.subscribers.urls[1]: must be nats, tls, ws or wss://host[:port]"},
		{"password", "nats:\n  subscribers:\n    urls: ['nats://u:pw@h']\n", "helix.yaml:3: nats.subscribers.urls[0]: must be nats, tls, ws or wss://host[:port]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.text, nil)
			assert.EqualError(t, err, tt.want)
		})
	}
}
