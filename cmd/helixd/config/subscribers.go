package config

import (
	"net/url"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

// Subscribers configures rights of NATS clients to receive the records of single sessions.
type Subscribers struct {
	// SigningKey is the seed (SA…) of the account's key that signs the rights. Empty:
	// a single embedded server generates one in the data folder; otherwise no rights
	// are issued.
	SigningKey Secret `json:"signingKey"`
	// Account is the public id (A…) of the account to which signingKey belongs, in an
	// existing deployment. Empty: signingKey is the account's main key.
	Account string `json:"account"`
	// TTL is how long a right lasts if the request names no ttl, from 1s to 24h;
	// default 1h.
	TTL time.Duration `json:"ttl"`
	// URLs are the addresses at which clients connect, nats, tls, ws or wss. Empty:
	// the embedded server's addresses.
	URLs []string `json:"urls"`
}

func (k *checker) checkSubscribers(s Subscribers) {
	const path = "nats.subscribers"
	if !s.SigningKey.IsZero() {
		_, err := subscriber.New(s.SigningKey.Reveal(), nil)
		k.require(err == nil, path+".signingKey", "must be the seed of an account's key (SA…)")
	}
	k.require(s.Account == "" || nkeys.IsValidPublicAccountKey(s.Account), path+".account", "must be the public key of an account (A…)")
	k.needed(s.Account == "" || !s.SigningKey.IsZero(), path, "needs a signingKey for the account")
	k.require(s.TTL >= subscriber.MinTTL && s.TTL <= subscriber.MaxTTL, path+".ttl", "must be from 1s to 24h")
	for i, u := range s.URLs {
		k.require(isClientURL(u), index(path+".urls", i), "must be nats, tls, ws or wss://host[:port]")
	}
}

// isClientURL requires the scheme, which distinguishes WebSocket from TCP, and refuses a
// password: every client that gets a right sees the address.
func isClientURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	switch u.Scheme {
	case "nats", "tls", "ws", "wss":
		return true
	}
	return false
}
