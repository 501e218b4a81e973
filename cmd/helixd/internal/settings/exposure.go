package settings

import (
	"fmt"
	"log/slog"
	"math"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// The least strength of a token on an address that others can reach: a random one of 16
// hexadecimal digits is enough.
const (
	minTokenBytes = 16
	minTokenBits  = 48
)

// Exposure is a setting that is unsafe on an address that other machines reach.
type Exposure struct{ Key, Found, Advice string }

// Exposures returns what is unsafe about a configuration, empty if only this machine
// reaches the HTTP server.
func Exposures(c *config.Config) (all []Exposure) {
	if IsLoopback(c.Listen) {
		return nil
	}
	add := func(key, found, advice string) { all = append(all, Exposure{key, found, advice}) }
	if !c.Auth.Configured() {
		add("listen", c.Listen+" is not a loopback address, and everyone who reaches it may do everything", "set auth.tokens or auth.jwt")
	}
	if c.TLS.Cert == "" && !c.TLS.Proxy {
		add("tls", c.Listen+" is not a loopback address and has no TLS: tokens and sessions can be read on the network",
			"set tls.cert and tls.key; if a proxy in front of the daemon has TLS, say so with tls.proxy")
	}
	for i, t := range c.Auth.Tokens {
		if weak(t.Token.Reveal()) {
			key := fmt.Sprintf("auth.tokens[%d]", i)
			add(key, fmt.Sprintf("%s (%s) can be guessed, and %s is not a loopback address", key, t.Name, c.Listen),
				fmt.Sprintf("take a random token of %d characters or more, such as that of: openssl rand -hex 32", minTokenBytes))
		}
	}
	return all
}

// weak reports whether a token is short, or has few different characters.
func weak(token string) bool {
	different := map[byte]bool{}
	for i := range len(token) {
		different[token[i]] = true
	}
	return len(token) < minTokenBytes || float64(len(token))*math.Log2(float64(len(different))) < minTokenBits
}

// WarnOfExposure logs what is unsafe.
func WarnOfExposure(c *config.Config, log *slog.Logger) {
	for _, e := range Exposures(c) {
		log.Warn(e.Key+": "+e.Found, "advice", e.Advice)
	}
}
