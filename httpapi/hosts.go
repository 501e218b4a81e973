package httpapi

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/helixd/helixd/httpapi/auth"
)

// anyHost is the pattern of all host names.
const anyHost = "*"

// errHost refuses a request that names another host. The web page of an
// attacker can make its own name resolve to this server (DNS rebinding); the
// browser then takes the server for the page's own origin.
var errHost = &auth.Refusal{Status: http.StatusForbidden, Message: "this server does not answer under that host name (see the key hosts)"}

// ValidateHost reports whether a name can be one of [Options].Hosts: a host name
// in lower case without port, "*.domain" for all names below a domain, or "*".
func ValidateHost(name string) error {
	bare := strings.TrimPrefix(name, "*.")
	if name == anyHost || bare != "" && !strings.ContainsFunc(bare, notInHost) && strings.Trim(bare, ".") == bare {
		return nil
	}
	return errors.New(`must be "*" or a host name in lower case without scheme and port, such as helix.example or *.helix.example`)
}

func notInHost(c rune) bool {
	return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("-._", c))
}

func (s *Server) answerTo(hosts []string) error {
	for _, name := range hosts {
		if err := ValidateHost(name); err != nil {
			return fmt.Errorf("httpapi: host %q %w", name, err)
		}
	}
	if slices.Contains(hosts, anyHost) && !s.gate.Authenticated {
		return errors.New(`httpapi: the host "*" needs authentication: every web page could use this server`)
	}
	s.hosts = slices.Clone(hosts)
	return nil
}

// checkHost refuses a host name that is not the server's. It allows addresses: a page
// whose origin is the server's address came from the server.
func (s *Server) checkHost(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(host); err == nil || r.Host == "" || host == "localhost" { // no Host: no browser
		return nil
	}
	if slices.ContainsFunc(s.hosts, func(name string) bool {
		below, wildcard := strings.CutPrefix(name, "*")
		return name == host || wildcard && strings.HasSuffix(host, below)
	}) {
		return nil
	}
	return errHost
}
