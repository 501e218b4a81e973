package config

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

func (k *checker) checkNATS() {
	n := k.config.NATS
	k.require(n.URL == "" || isNATSURLs(n.URL), "nats.url", "must be a comma-separated list of nats://host:port")
	k.require(n.Listen == "" || isHostPort(n.Listen), "nats.listen", "must be host:port")
	k.require(!strings.ContainsFunc(n.Name, isBlank), "nats.name", "must not have spaces or control characters")
	k.require(n.Replicas == 1 || n.Replicas == 3 || n.Replicas == 5, "nats.replicas", "must be 1, 3 or 5")
	k.require(n.Partitions >= 0 && n.Partitions <= layout.MaxPartitions, "nats.partitions", fmt.Sprintf("must be from 0 to %d", layout.MaxPartitions))
	k.checkFiles("nats.tls", n.TLS)
	k.needed((n.TLS.Cert == "") == (n.TLS.Key == ""), "nats.tls", "cert and key need each other")
	k.checkWebSocket(n.WebSocket)
	k.checkCluster(n)
	k.checkSubscribers(n.Subscribers)
	for _, embedded := range []struct {
		path string
		set  bool
	}{
		{"nats.name", n.Name != ""},
		{"nats.websocket", n.WebSocket.Listen != ""},
		{"nats.cluster", n.Cluster.Listen != ""},
	} {
		k.require(n.URL == "" || !embedded.set, embedded.path, "is for the embedded server, which there is none of with nats.url")
	}
}

func (k *checker) checkWebSocket(w WebSocket) {
	const path = "nats.websocket"
	k.require(w.Listen == "" || isHostPort(w.Listen), path+".listen", "must be host:port")
	k.checkFiles(path, TLS{Cert: w.Cert, Key: w.Key})
	k.needed((w.Cert == "") == (w.Key == ""), path, "cert and key need each other")
	k.needed(w.Listen != "" || w.Cert == "", path, "needs a listen address")
}

func (k *checker) checkCluster(n NATS) {
	const path = "nats.cluster"
	c := n.Cluster
	k.require(c.Name != "" && !strings.ContainsFunc(c.Name, isBlank), path+".name", "must not be empty, nor have spaces or control characters")
	k.require(c.Listen == "" || isHostPort(c.Listen) && !strings.HasSuffix(c.Listen, ":0"), path+".listen", "must be host:port, the port not 0")
	for i, route := range c.Routes {
		k.require(isRoute(route), index(path+".routes", i), "must be nats://host:port")
	}
	k.checkFiles(path+".tls", c.TLS)
	k.needed((c.TLS == TLS{}) || c.TLS.CA != "" && c.TLS.Cert != "" && c.TLS.Key != "", path+".tls", "ca, cert and key need each other")
	k.needed((c.User == "") == c.Password.IsZero(), path, "user and password need each other")
	if c.Listen == "" {
		k.needed(len(c.Routes) == 0 && c.User == "" && c.TLS == (TLS{}), path, "needs a listen address")
		return
	}
	k.needed(len(c.Routes) > 0, path, "needs routes to the other servers")
	k.require(n.Replicas <= c.Servers(), "nats.replicas", "must not be more than the servers: nats.cluster.routes and this one")
}

// checkFiles refuses what file:PATH gives for a file's path.
func (k *checker) checkFiles(path string, t TLS) {
	for _, file := range []struct{ key, value string }{{"ca", t.CA}, {"cert", t.Cert}, {"key", t.Key}} {
		k.require(!strings.Contains(file.value, "\n"), join(path, file.key), "must be a file's path, not its content")
	}
}

// isNATSURLs accepts what nats.go does: the scheme may be left out.
func isNATSURLs(s string) bool {
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "://") {
			part = "nats://" + part
		}
		u, err := url.Parse(part)
		if err != nil || u.Host == "" {
			return false
		}
		switch u.Scheme {
		case "nats", "tls", "ws", "wss":
		default:
			return false
		}
	}
	return true
}

// isRoute leaves no room for a password, which has its own key.
func isRoute(s string) bool {
	hostPort, ok := strings.CutPrefix(s, "nats://")
	return ok && isHostPort(hostPort) && !strings.HasPrefix(hostPort, ":") && !strings.ContainsAny(hostPort, "@/?#")
}
