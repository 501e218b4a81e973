package web

import (
	"cmp"
	"net"
	"net/http"

	"github.com/helixd/helixd/agentloop/quota"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/fact"
	"github.com/helixd/helixd/httpapi/auth"
)

// maxActor is the longest name or subject that is recorded of a caller, in bytes.
const maxActor = 256

// actorOf returns the caller as records and log lines name it.
func actorOf(r *http.Request) fact.Actor {
	c := auth.CallerOf(r.Context())
	address, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		address = r.RemoteAddr
	}
	return fact.Actor{
		Token: Cut(c.Name, maxActor), Subject: Cut(c.Subject, maxActor), User: c.User, Address: Cut(address, maxActor),
		Request: RequestID(r.Context()),
	}
}

// acting returns the request with its actor and its tenant in its context: records say
// who asked for them, and the tenant's quota admits them.
func acting(r *http.Request) *http.Request {
	ctx := fact.WithActor(r.Context(), actorOf(r))
	return r.WithContext(quota.WithCaller(ctx, auth.CallerOf(ctx).Tenant))
}

// ActorAttrs returns the caller's log attributes.
func ActorAttrs(r *http.Request) []any {
	a := actorOf(r)
	attrs := []any{eventlog.LogAddress, a.Address}
	if caller := cmp.Or(a.Token, a.Subject); caller != "" {
		attrs = append(attrs, eventlog.LogCaller, caller)
	}
	if a.User != "" {
		attrs = append(attrs, eventlog.LogUser, a.User)
	}
	return attrs
}
