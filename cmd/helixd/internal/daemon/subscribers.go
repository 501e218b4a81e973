package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/httpapi/api"
)

// subscribersFile, in the data folder, holds the key of a daemon that was
// given none.
const subscribersFile = "subscribers.nk"

// minterOf returns the minter of NATS subscribers' rights, or nil if there
// are no rights.
func minterOf(c *config.Config) (*subscriber.Minter, error) {
	n := c.NATS
	if n.URL == "" && n.Subscribers.Account != "" { // not a matter of the file alone: a flag may give the URL
		return nil, errors.New("nats.subscribers.account: needs nats.url: the embedded server has its own accounts")
	}
	if !settings.HasSubscribers(n) {
		return nil, nil
	}
	seed := n.Subscribers.SigningKey.Reveal()
	if seed == "" {
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
	if err = os.MkdirAll(dataDir, 0o750); err == nil {
		err = settings.WriteWhole(path, func(w io.Writer) error {
			_, err := io.WriteString(w, seed+"\n")
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("key of NATS subscribers: %w", err)
	}
	return seed, nil
}

// subscriberKeys are those whose rights an embedded server takes.
func subscriberKeys(m *subscriber.Minter) []string {
	if m == nil {
		return nil
	}
	return []string{m.PublicKey()}
}

// revocationsOf returns those of the rights that the minter makes, or nil if
// there are none, or others than embedded servers decide about them.
func revocationsOf(c *config.Config, m *subscriber.Minter) *subscriber.Revocations {
	if m == nil || c.NATS.URL != "" {
		return nil
	}
	return subscriber.NewRevocations()
}

// unsubscribing revokes rights for the HTTP API, or is nil if helixd can't.
func unsubscribing(r *subscriber.Revocations) func(context.Context, string) error {
	if r == nil {
		return nil
	}
	return r.Revoke
}

// subscribing makes rights for the HTTP API; nil if there are no rights.
// known are where the embedded server listens, or empty.
func subscribing(m *subscriber.Minter, r *subscriber.Revocations, s config.Subscribers, known ...string) func(context.Context, string, time.Duration) (api.Subscription, error) {
	if m == nil {
		return nil
	}
	if len(s.URLs) > 0 {
		known = s.URLs
	}
	var urls api.SubscriptionURLs
	for _, u := range known {
		switch {
		case u == "":
		case strings.HasPrefix(u, "ws"):
			urls.WebSocket = append(urls.WebSocket, u)
		default:
			urls.NATS = append(urls.NATS, u)
		}
	}
	return func(ctx context.Context, session string, ttl time.Duration) (api.Subscription, error) {
		generation := uint64(0)
		if r != nil {
			var err error
			if generation, err = r.Generation(ctx, session); err != nil {
				return api.Subscription{}, err
			}
		}
		right, err := m.Mint(session, generation, ttl)
		if err != nil {
			return api.Subscription{}, err
		}
		return api.Subscription{
			Subject: right.Subject, URLs: urls, JWT: right.JWT, Seed: right.Seed, Creds: right.Creds, ExpiresAt: right.ExpiresAt,
		}, nil
	}
}
