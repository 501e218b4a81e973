package config

import (
	"encoding/json"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// name is what agents and tools may be called.
var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

const nameRule = "the name must match [a-zA-Z0-9_-]{1,64}"

// Validate checks the values of a configuration that was changed after Load.
// The error is nil or names every problem, one a line.
func (c *Config) Validate() error { return joined(c.check()) }

// checker collects what is wrong with a configuration's values.
type checker struct {
	config   *Config
	problems []problem
}

func (c *Config) check() []problem {
	k := &checker{config: c}
	k.checkServer()
	k.checkNATS()
	k.checkAuth()
	k.checkAgents()
	k.checkUnsupported()
	return k.problems
}

// require reports a problem unless ok.
func (k *checker) require(ok bool, path, text string) {
	if !ok {
		k.problems = append(k.problems, problem{at: k.config.originOf(path), path: path, text: text})
	}
}

// needed reports that something is missing unless ok.
func (k *checker) needed(ok bool, path, text string) {
	if !ok {
		k.problems = append(k.problems, problem{at: k.config.originOf(path), path: path, text: text, missing: true})
	}
}

func (k *checker) checkServer() {
	c := k.config
	k.require(isHostPort(c.Listen), "listen", "must be host:port")
	k.require(c.DataDir != "", "dataDir", "must not be empty")
	_, ok := parseDurability(c.Durability)
	k.require(ok, "durability", "must be fsync or interval=<duration greater than 0>")
	k.require(c.NATS.URL == "" || !c.isSet("durability"), "durability", "is for the embedded server: with nats.url the deployment's operator decides")
	if c.Chat.DefaultAgent != "" && (c.file != "" || len(c.Agents) > 0) {
		_, ok := c.Agents[c.Chat.DefaultAgent]
		k.require(ok, "chat.defaultAgent", "must be one of the agents")
	}
}

func (k *checker) checkNATS() {
	n := k.config.NATS
	k.require(n.URL == "" || isNATSURLs(n.URL), "nats.url", "must be a comma-separated list of nats://host:port")
	k.require(n.Listen == "" || isHostPort(n.Listen), "nats.listen", "must be host:port")
	k.require(n.Replicas == 1 || n.Replicas == 3 || n.Replicas == 5, "nats.replicas", "must be 1, 3 or 5")
	k.require(n.Partitions >= 0, "nats.partitions", "must not be negative")
	for _, file := range []struct{ path, value string }{
		{"nats.tls.ca", n.TLS.CA}, {"nats.tls.cert", n.TLS.Cert}, {"nats.tls.key", n.TLS.Key},
	} {
		k.require(!strings.Contains(file.value, "\n"), file.path, "must be a file's path, not its content")
	}
	k.needed((n.TLS.Cert == "") == (n.TLS.Key == ""), "nats.tls", "cert and key need each other")
	k.require(n.Cluster.Listen == "" || isHostPort(n.Cluster.Listen), "nats.cluster.listen", "must be host:port")
	for i, route := range n.Cluster.Routes {
		k.require(isNATSURLs(route), index("nats.cluster.routes", i), "must be nats://host:port")
	}
}

// isHostPort accepts an empty host, which means every interface.
func isHostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

func isHTTPURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
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

// isObject reports whether free JSON is absent or an object.
func isObject(raw json.RawMessage) bool {
	return raw == nil || strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}
