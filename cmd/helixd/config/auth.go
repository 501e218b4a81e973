package config

import "github.com/helixd/helixd/httpapi"

// Auth says who may do what. Nothing configured means nobody, unless
// AllowUnauthenticated.
type Auth struct {
	AllowUnauthenticated bool    `json:"allowUnauthenticated"` // run without tokens and jwt, on a loopback address; default false
	Tokens               []Token `json:"tokens"`
	JWT                  JWT     `json:"jwt"`
}

// Configured reports whether callers have to show who they are.
func (a Auth) Configured() bool { return len(a.Tokens) > 0 || a.JWT.JWKSFile != "" }

// Token is a bearer token and what it may do.
type Token struct {
	Token      Secret   `json:"token"`      // what the caller sends as Authorization: Bearer
	Name       string   `json:"name"`       // what logs call it
	Operations []string `json:"operations"` // globs on the operation tag; default ["*"]
	Sessions   []string `json:"sessions"`   // globs on the session id; default ["*"]
}

func (t *Token) setDefaults() {
	t.Operations = []string{"*"}
	t.Sessions = []string{"*"}
}

// JWT accepts JSON Web Tokens.
type JWT struct {
	// JWKSFile is a file of public keys, a JSON Web Key Set, relative to the
	// working directory; empty: no tokens of this kind.
	JWKSFile        string `json:"jwksFile"`
	Issuer          string `json:"issuer"`          // what iss must be; empty: anything
	Audience        string `json:"audience"`        // what aud must have; empty: anything
	SessionsClaim   string `json:"sessionsClaim"`   // default "helix_sessions"
	OperationsClaim string `json:"operationsClaim"` // default "helix_operations"
}

// Options returns what the server takes.
func (j JWT) Options() httpapi.JWTOptions {
	return httpapi.JWTOptions{
		JWKSFile: j.JWKSFile, Issuer: j.Issuer, Audience: j.Audience,
		SessionsClaim: j.SessionsClaim, OperationsClaim: j.OperationsClaim,
	}
}
