package settings

import (
	"fmt"
	"net/http"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// Authentication decides about requests and identifies their callers. Both functions
// are nil if no authentication is configured.
type Authentication struct {
	Auth     httpapi.Authenticator
	Identify httpapi.Identifier
	jwt      *httpapi.JWT // nil: not configured
}

// AuthenticationOf returns the configured authentication. It keeps the keys that the
// authentication before it has fetched from the same URL.
func AuthenticationOf(a config.Auth, before Authentication) (Authentication, error) {
	if !a.Configured() {
		return Authentication{}, nil
	}
	tokens := tokensOf(a.Tokens)
	auth, identify := httpapi.BearerTokens(tokens), httpapi.TokenCallers(tokens)
	if !a.JWT.Configured() {
		return Authentication{auth, certified(identify), nil}, nil
	}
	byJWT, err := httpapi.NewJWT(a.JWT.Options())
	if err != nil {
		return Authentication{}, fmt.Errorf("auth.jwt: %w", err)
	}
	byJWT.KeepKeys(before.jwt)
	return Authentication{httpapi.AnyOf(auth, byJWT.Authenticate), certified(httpapi.AnyCaller(identify, byJWT.Identify)), byJWT}, nil
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
