package httpapi

import (
	"slices"

	"github.com/helixd/helixd/httpapi/auth"
)

// RouteInfo describes a route of the server.
type RouteInfo struct {
	Method  string
	Pattern string // its path; {id} is a session's id, percent-encoded, {file} a file's name
	// Operation is what the [auth.Authenticator] is asked for; empty: the route
	// needs no authentication.
	Operation auth.Operation
}

// Routes returns the routes of helixd's own protocol. A GET route answers HEAD as well.
func Routes() []RouteInfo { return routesOf(func(p *protocol) bool { return p == nil }) }

// ProtocolRoutes returns the routes of the protocols of others, which their own documents
// describe. See [Protocols].
func ProtocolRoutes() []RouteInfo { return routesOf(func(p *protocol) bool { return p != nil }) }

func routesOf(wanted func(*protocol) bool) (routes []RouteInfo) {
	for _, rt := range routeTable {
		if wanted(protocolOf(rt.pattern)) {
			routes = append(routes, RouteInfo{Method: rt.method, Pattern: rt.pattern, Operation: rt.op})
		}
	}
	return routes
}

// Operations returns what an [auth.Authenticator] may be asked for, sorted.
func Operations() []auth.Operation {
	ops := []auth.Operation{auth.OpDebugger} // of a route that asks itself
	for _, rt := range routeTable {
		if rt.op != opPublic {
			ops = append(ops, rt.op)
		}
	}
	slices.Sort(ops)
	return slices.Compact(ops)
}
