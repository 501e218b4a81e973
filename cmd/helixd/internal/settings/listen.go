package settings

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// CheckListen refuses a configuration in which clients from other machines could read
// live streams that they may not read over HTTP, or in which foreign servers could join
// the cluster and get the log. forced allows addresses that are not loopback. It warns of
// what remains possible.
func CheckListen(c *config.Config, forced bool, log *slog.Logger) error {
	n := c.NATS
	if n.URL != "" {
		return nil
	}
	const clients = "nats.user and nats.password"
	known := n.User != "" && !n.Password.IsZero()
	for _, l := range []struct {
		key, address string
		safe         bool
		needs        string // what makes it safe
	}{
		{"nats.listen", n.Listen, known, clients},
		{"nats.websocket.listen", n.WebSocket.Listen, known, clients},
		{"nats.websocket.listen", n.WebSocket.Listen, n.WebSocket.Cert != "", "nats.websocket.cert and key"},
		{"nats.cluster.listen", n.Cluster.Listen, n.Cluster.User != "" || n.Cluster.TLS.CA != "", "nats.cluster.user and password, or tls"},
	} {
		switch {
		case l.address == "" || l.safe:
		case l.key == "nats.websocket.listen" && l.needs == clients && slices.Contains(c.CORS.Origins, "*"):
			return fmt.Errorf("%s: with the origin * in cors.origins every web page could read all sessions: set %s", l.key, l.needs)
		case !IsLoopback(l.address) && !forced:
			return fmt.Errorf("%s: %s is not a loopback address: set %s, or give --force-unauthenticated", l.key, l.address, l.needs)
		case !c.Auth.Configured(): // any process on this machine may do everything anyway
		case l.key == "nats.cluster.listen":
			log.Warn(l.key+": every host that reaches it can join, and read and write everything; to prevent this, set "+l.needs, "address", l.address)
		case IsLoopback(l.address) && l.needs == clients:
			log.Warn(l.key+": every user of this machine can read live streams, regardless of auth; "+
				"to prevent this, set "+clients, "address", l.address)
		}
	}
	return nil
}

// Hosts are the names that the HTTP server answers under: those that are
// configured, and the one in its address.
func Hosts(c *config.Config) []string {
	host, _, _ := net.SplitHostPort(c.Listen) // it is valid
	host = strings.ToLower(host)
	if httpapi.ValidateHost(host) != nil || host == "*" {
		return c.Hosts
	}
	return append(slices.Clone(c.Hosts), host)
}

func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Scheme is that of the HTTP server's URL.
func Scheme(c *config.Config) string {
	if c.TLS.Cert != "" {
		return "https://"
	}
	return "http://"
}
