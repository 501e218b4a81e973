package httpapi

import (
	"net/http"
	"strings"

	"github.com/helixd/helixd/httpapi/durable"
	"github.com/helixd/helixd/httpapi/internal/web"
)

// Protocols are the protocols of others that a server speaks.
type Protocols struct {
	// DurableStreams serves durable streams, and sessions as such streams, below /v1/stream/.
	DurableStreams bool
}

// protocol is a protocol of others, which has its own paths.
type protocol struct {
	name  string   // in metrics
	paths []string // and all that follows them after a slash
	on    func(*Protocols) bool
}

var protocols = []protocol{
	{name: "durable-streams", paths: []string{strings.TrimSuffix(durable.Prefix, "/")}, on: func(p *Protocols) bool { return p.DurableStreams }},
}

// ownProtocol is the name of helixd's own protocol in metrics.
const ownProtocol = "helixd"

// protocolOf returns the protocol that a path belongs to, or nil.
func protocolOf(path string) *protocol {
	for i := range protocols {
		for _, own := range protocols[i].paths {
			if path == own || strings.HasPrefix(path, own+"/") {
				return &protocols[i]
			}
		}
	}
	return nil
}

// protocolName returns the name of the protocol that a route belongs to.
func protocolName(route string) string {
	if p := protocolOf(route); p != nil {
		return p.name
	}
	return ownProtocol
}

// spoken reports whether the server speaks the protocol of a path; helixd's own it does.
func (s *Server) spoken(path string) bool {
	p := protocolOf(path)
	return p == nil || p.on(&s.opts.Protocols)
}

func durables(f func(*durable.Routes, http.ResponseWriter, *web.Request) error) handler {
	return func(s *Server, w http.ResponseWriter, r *web.Request) error { return f(s.durable, w, r) }
}
