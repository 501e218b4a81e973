package main

import (
	"fmt"
	"net/http"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// authentication decides about requests and identifies their callers. Both are nil
// if nothing is configured.
type authentication struct {
	auth     httpapi.Authenticator
	identify httpapi.Identifier
	jwt      *httpapi.JWT // nil: not configured
}

// authOf returns the authentication that is configured. It keeps the keys that the
// one before has fetched from the same URL.
func authOf(a config.Auth, before authentication) (authentication, error) {
	if !a.Configured() {
		return authentication{}, nil
	}
	tokens := tokensOf(a.Tokens)
	auth, identify := httpapi.BearerTokens(tokens), httpapi.TokenCallers(tokens)
	if !a.JWT.Configured() {
		return authentication{auth, certified(identify), nil}, nil
	}
	byJWT, err := httpapi.NewJWT(a.JWT.Options())
	if err != nil {
		return authentication{}, fmt.Errorf("auth.jwt: %w", err)
	}
	byJWT.KeepKeys(before.jwt)
	return authentication{httpapi.AnyOf(auth, byJWT.Authenticate), certified(httpapi.AnyCaller(identify, byJWT.Identify)), byJWT}, nil
}

func tokensOf(tokens []config.Token) []httpapi.Token {
	out := make([]httpapi.Token, len(tokens))
	for i, t := range tokens {
		out[i] = httpapi.Token{
			Token: t.Token.Reveal(), Name: t.Name, Operations: t.Operations, Sessions: t.Sessions, User: t.User, Tenant: t.Tenant,
		}
	}
	return out
}

// certified names callers by the subject of their client certificate, unless their
// JWT has a subject.
func certified(identify httpapi.Identifier) httpapi.Identifier {
	return func(r *http.Request) (httpapi.Caller, error) {
		c, err := identify(r)
		if c.Subject == "" && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			c.Subject = r.TLS.PeerCertificates[0].Subject.String()
		}
		return c, err
	}
}
