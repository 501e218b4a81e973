package settings

import (
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// How long connecting and opening the streams may take. In a cluster the streams may
// first have to elect their leaders, or to be created on several servers.
const (
	aloneOpenTimeout   = time.Minute
	clusterOpenTimeout = 5 * time.Minute
)

// reconnectWait is the pause between two tries to reconnect.
const reconnectWait = 100 * time.Millisecond

// OpenTimeout is how long opening the streams may take.
func OpenTimeout(c *config.Config) time.Duration {
	if c.NATS.Replicas > 1 || c.NATS.Cluster.Listen != "" {
		return clusterOpenTimeout
	}
	return aloneOpenTimeout
}

// NATSOptions are those of a connection to the configured deployment.
func NATSOptions(n config.NATS) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name("helixd"), nats.MaxReconnects(-1),
		// Credentials that are refused twice may be right later: a renewed file comes late, or a server reloads.
		nats.IgnoreAuthErrorAbort(),
		// Sooner than other nodes take this one for dead.
		nats.ReconnectWait(reconnectWait), nats.ReconnectJitter(reconnectWait, reconnectWait),
	}
	if !n.Credentials.IsZero() {
		if n.InlineCredentials() {
			opts = append(opts, nats.UserCredentialBytes([]byte(n.Credentials.Reveal())))
		} else {
			opts = append(opts, nats.UserCredentials(n.Credentials.Reveal()))
		}
	}
	if n.User != "" {
		opts = append(opts, nats.UserInfo(n.User, n.Password.Reveal()))
	}
	if !n.Token.IsZero() {
		opts = append(opts, nats.Token(n.Token.Reveal()))
	}
	if n.TLS.CA != "" {
		opts = append(opts, nats.RootCAs(n.TLS.CA))
	}
	if n.TLS.Cert != "" {
		opts = append(opts, nats.ClientCert(n.TLS.Cert, n.TLS.Key))
	}
	for _, file := range []string{n.TLS.CA, n.TLS.Cert, n.TLS.Key} {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("nats.tls: %w", err)
		}
	}
	return opts, nil
}

// GrowsAtStart reports whether a log grows when this node starts with more partitions than it
// has: unless other NATS clients, which place sessions by themselves, may be writing it.
func GrowsAtStart(c *config.Config) bool {
	n := c.NATS
	return n.URL != "" || n.User == "" || n.Listen == "" && n.WebSocket.Listen == ""
}

// HasSubscribers reports whether there are rights of NATS subscribers. Without its own
// key, an embedded server of a cluster would make rights that the others
// don't know; and where NATS clients can't connect, a right is of no use.
func HasSubscribers(n config.NATS) bool {
	if n.URL == "" && n.Listen == "" && n.WebSocket.Listen == "" && len(n.Subscribers.URLs) == 0 {
		return false
	}
	return n.Subscribers.SigningKey.Reveal() != "" || n.URL == "" && n.Cluster.Listen == ""
}

// IgnoreAsync ignores the errors that a connection can't return to a caller: that a
// message's headers are damaged is found when the message is read.
func IgnoreAsync(*nats.Conn, *nats.Subscription, error) {}
