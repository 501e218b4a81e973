package httpapi

import (
	"strings"

	"github.com/helixd/helixd/httpapi/agui"
	"github.com/helixd/helixd/httpapi/api"
	"github.com/helixd/helixd/httpapi/durable"
	"github.com/helixd/helixd/httpapi/responses"
)

// Protocols are the protocols of others that a server speaks.
type Protocols struct {
	// DurableStreams serves durable streams, and sessions as such streams, below /v1/stream/.
	DurableStreams bool
	// Responses serves the OpenAI Responses and Conversations APIs at /v1/responses and
	// /v1/conversations; nil: it does not.
	Responses *responses.Options
	// AGUI serves AG-UI at /ag-ui/{agent}.
	AGUI bool
}

// protocol is a protocol of others, which has its own paths and, mostly, errors.
type protocol struct {
	name  string   // in metrics
	paths []string // and all that follows them after a slash
	on    func(*Protocols) bool
	// failure returns the answer to an error, which body describes as helixd's own routes do;
	// nil: it is as they do.
	failure func(err error, status int, body api.ErrorBody) any
}

var protocols = []protocol{
	{name: "durable-streams", paths: []string{strings.TrimSuffix(durable.Prefix, "/")}, on: func(p *Protocols) bool { return p.DurableStreams }},
	{
		name: "responses", paths: []string{"/v1/responses", "/v1/conversations"},
		on:      func(p *Protocols) bool { return p.Responses != nil },
		failure: responses.ErrorOf,
	},
	{name: "ag-ui", paths: []string{"/ag-ui"}, on: func(p *Protocols) bool { return p.AGUI }, failure: agui.ErrorOf},
}

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

// ownProtocol is the name of helixd's own protocol in metrics.
const ownProtocol = "helixd"

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
