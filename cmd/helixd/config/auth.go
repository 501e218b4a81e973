package config

import (
	"github.com/helixd/helixd/httpapi/auth"
)

// Auth configures the permissions of callers. Without any, no caller may do anything, unless
// AllowUnauthenticated is set.
type Auth struct {
	AllowUnauthenticated bool    `json:"allowUnauthenticated"` // start without tokens and jwt, on a loopback address only; default false
	Tokens               []Token `json:"tokens"`
	JWT                  JWT     `json:"jwt"`
	TicketKey            Secret  `json:"ticketKey"` // the key that encrypts the stream tickets of browsers, at least 32 bytes, the same on all nodes; empty: a random one, and a ticket is valid only at the node that made it
}

// Configured reports whether callers have to show who they are.
func (a Auth) Configured() bool { return len(a.Tokens) > 0 || a.JWT.Configured() }

// Token is a bearer token and what it may do.
type Token struct {
	Token      Secret   `json:"token"`      // the token that the caller sends as Authorization: Bearer
	Name       string   `json:"name"`       // the token's name in logs and records
	Operations []string `json:"operations"` // globs on the operation tag; default ["*"]. The right "act-as" must be listed by its full name.
	Sessions   []string `json:"sessions"`   // globs on the session id; default ["*"]
	User       string   `json:"user"`       // the user that the caller acts for: it reaches this user's sessions and memories only, unless it has the right act-as; at most 256 bytes. Empty: none
	Tenant     string   `json:"tenant"`     // the team or customer that the caller belongs to: it reaches this tenant's sessions only, unless it has the right act-as; at most 256 bytes. Empty: none
}

func (t *Token) setDefaults() {
	t.Operations = []string{"*"}
	t.Sessions = []string{"*"}
}

// JWT accepts JSON Web Tokens.
type JWT struct {
	// JWKSFile is the path of a JSON Web Key Set, relative to the working directory;
	// empty: no JWTs.
	JWKSFile string `json:"jwksFile"`
	// JWKSURL is the URL from which the key set is fetched instead, https or on a
	// loopback address. The set is kept for 15 minutes, and for 24 hours while it
	// can't be fetched. It needs issuer and audience.
	JWKSURL         string `json:"jwksUrl"`
	Issuer          string `json:"issuer"`          // the required iss; empty: any
	Audience        string `json:"audience"`        // the required aud; empty: any
	SessionsClaim   string `json:"sessionsClaim"`   // the claim with the session globs; default "helix_sessions"
	OperationsClaim string `json:"operationsClaim"` // the claim with the operations; default "helix_operations"
	UserIDClaim     string `json:"userIdClaim"`     // the claim that names the caller's user, such as "sub"; a token without it needs the right act-as. Empty: tokens have no user
	TenantClaim     string `json:"tenantClaim"`     // the claim that names the caller's tenant, which every token then needs. Empty: tokens have no tenant
}

// Configured reports whether such tokens are accepted.
func (j JWT) Configured() bool { return j.JWKSFile != "" || j.JWKSURL != "" }

// Options returns what the server takes.
func (j JWT) Options() auth.JWTOptions {
	return auth.JWTOptions{
		JWKSFile: j.JWKSFile, JWKSURL: j.JWKSURL, Issuer: j.Issuer, Audience: j.Audience,
		SessionsClaim: j.SessionsClaim, OperationsClaim: j.OperationsClaim, UserIDClaim: j.UserIDClaim, TenantClaim: j.TenantClaim,
	}
}
