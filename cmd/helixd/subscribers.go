package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/httpapi"
)

// subscribersFile, in the data folder, holds the key of a daemon that was
// given none.
const subscribersFile = "subscribers.nk"

// minterOf returns who makes the rights of NATS subscribers, or nil if there
// are none: without a key of its own, an embedded server of a cluster would
// make rights that the others don't know; and where NATS clients can't
// connect, a right is of no use.
func minterOf(c *config.Config) (*subscriber.Minter, error) {
	n := c.NATS
	if n.URL == "" && n.Subscribers.Account != "" { // not a matter of the file alone: a flag may give the URL
		return nil, errors.New("nats.subscribers.account: needs nats.url: the embedded server has accounts of its own")
	}
	if n.URL == "" && n.Listen == "" && n.WebSocket.Listen == "" && len(n.Subscribers.URLs) == 0 {
		return nil, nil
	}
	seed := n.Subscribers.SigningKey.Reveal()
	if seed == "" {
		if n.URL != "" || n.Cluster.Listen != "" {
			return nil, nil
		}
		var err error
		if seed, err = ownKey(c.DataDir); err != nil {
			return nil, err
		}
	}
	m, err := subscriber.New(seed, &subscriber.Options{Account: n.Subscribers.Account, TTL: n.Subscribers.TTL})
	if err != nil {
		return nil, fmt.Errorf("nats.subscribers: %w", err)
	}
	return m, nil
}

// ownKey reads the key of the data folder, and makes one at the first use.
func ownKey(dataDir string) (seed string, err error) {
	path := filepath.Join(dataDir, subscribersFile)
	raw, err := os.ReadFile(path)
	if err == nil {
		seed = strings.TrimSpace(string(raw))
		if _, err := subscriber.New(seed, nil); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		return seed, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("key of NATS subscribers: %w", err)
	}
	if seed, err = subscriber.NewKey(); err != nil {
		return "", err
	}
	if err := writeKey(path, seed); err != nil {
		return "", fmt.Errorf("key of NATS subscribers: %w", err)
	}
	return seed, nil
}

// writeKey leaves a whole file or none, which only its owner may read.
func writeKey(path, seed string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), subscribersFile+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(seed + "\n")
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // the first error counts
	}
	return err
}

// subscriberKeys are those whose rights an embedded server takes.
func subscriberKeys(m *subscriber.Minter) []string {
	if m == nil {
		return nil
	}
	return []string{m.PublicKey()}
}

// subscribing makes rights for the HTTP API, or is nil if nobody makes any.
// known are where the embedded server listens, or empty.
func subscribing(m *subscriber.Minter, s config.Subscribers, known ...string) func(string, time.Duration) (httpapi.Subscription, error) {
	if m == nil {
		return nil
	}
	if len(s.URLs) > 0 {
		known = s.URLs
	}
	var urls httpapi.SubscriptionURLs
	for _, u := range known {
		switch {
		case u == "":
		case strings.HasPrefix(u, "ws"):
			urls.WebSocket = append(urls.WebSocket, u)
		default:
			urls.NATS = append(urls.NATS, u)
		}
	}
	return func(session string, ttl time.Duration) (httpapi.Subscription, error) {
		right, err := m.Mint(session, ttl)
		if err != nil {
			return httpapi.Subscription{}, err
		}
		return httpapi.Subscription{
			Subject: right.Subject, URLs: urls, JWT: right.JWT, Seed: right.Seed, Creds: right.Creds, ExpiresAt: right.ExpiresAt,
		}, nil
	}
}
