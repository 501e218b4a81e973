package config

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/auth"
)

func (k *checker) checkAuth() {
	for i, t := range k.config.Auth.Tokens {
		path := index("auth.tokens", i)
		k.require(!t.Token.IsZero(), path+".token", "must not be empty")
		k.require(!strings.ContainsFunc(t.Token.Reveal(), isBlank), path+".token", "must not have spaces or control characters")
		k.checkGlobs(t.Operations, path+".operations")
		for i, g := range t.Operations {
			k.require(g == "" || matchesOperation(g), index(path+".operations", i), "matches no operation")
		}
		k.checkGlobs(t.Sessions, path+".sessions")
		k.checkCaller(t.User, path+".user")
		k.checkCaller(t.Tenant, path+".tenant")
		for _, other := range k.config.Auth.Tokens[:i] {
			same := other.User == t.User && other.Tenant == t.Tenant
			k.require(same || other.Token.Reveal() != t.Token.Reveal(), path+".token", "is listed before with another user or tenant")
		}
	}
	if key := k.config.Auth.TicketKey; !key.IsZero() {
		if err := httpapi.ValidateTicketKey(key.Reveal()); err != nil {
			k.require(false, "auth.ticketKey", err.Error())
		}
	}
	k.checkJWT()
	k.checkCORS()
	k.checkExposure()
}

func (k *checker) checkServerTLS() {
	t := k.config.TLS
	k.checkFiles("tls", TLS{Cert: t.Cert, Key: t.Key})
	k.require(!strings.Contains(t.ClientCA, "\n"), "tls.clientCA", "must be a file's path, not its content")
	k.needed((t.Cert == "") == (t.Key == ""), "tls", "cert and key need each other")
	k.needed(t.ClientCA == "" || t.Cert != "", "tls", "clientCA needs cert and key")
}

func (k *checker) checkExposure() {
	c := k.config
	for i, name := range c.Hosts {
		path := index("hosts", i)
		if err := httpapi.ValidateHost(name); err != nil {
			k.require(false, path, err.Error())
		}
		k.require(name != "*" || c.Auth.Configured(), path, "every web page could use this server: needs auth.tokens or auth.jwt")
	}
	for i, route := range c.Public {
		k.require(slices.Contains(httpapi.PublicRoutes(), route), index("public", i), "must be one of "+strings.Join(httpapi.PublicRoutes(), ", "))
	}
	k.require(!c.Metrics.RequireAuth || !slices.Contains(c.Public, "/metrics"), "public", "has /metrics, which metrics.requireAuth forbids")
}

// isBlank reports whether a character would be lost, or refused, in a header.
func isBlank(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }

// checkCaller refuses an id that no user, or tenant, can have.
func (k *checker) checkCaller(id, path string) {
	if err := eventlog.ValidateID(id); id != "" && err != nil {
		problem, _ := errors.AsType[*eventlog.ValidationError](err)
		k.require(false, path, problem.Reason)
	}
}

// matchesOperation asks those who will decide about requests.
func matchesOperation(glob string) bool {
	if glob == string(auth.OpActAs) {
		return true
	}
	authenticate := auth.BearerTokens([]auth.Token{{Token: "t", Operations: []string{glob}, Sessions: []string{"*"}}})
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer t"}}}
	return slices.ContainsFunc(httpapi.Operations(), func(op auth.Operation) bool { return authenticate(r, op, "s") == nil })
}

// checkGlobs refuses an empty list: it reads like nothing, while leaving the
// key out means everything.
func (k *checker) checkGlobs(globs []string, path string) {
	k.require(len(globs) > 0, path, "must not be empty; leave the key out to allow everything")
	for i, g := range globs {
		k.require(g != "", index(path, i), "must not be empty")
	}
}

// checkJWT reads the keys, too: a daemon without them would refuse everybody.
func (k *checker) checkJWT() {
	j := k.config.Auth.JWT
	def := Default().Auth.JWT
	k.require(j.SessionsClaim != "", "auth.jwt.sessionsClaim", "must not be empty")
	k.require(j.OperationsClaim != "", "auth.jwt.operationsClaim", "must not be empty")
	switch {
	case j == def:
	case !j.Configured():
		k.needed(false, "auth.jwt", "needs a jwksFile or a jwksUrl")
	case j.JWKSURL != "" && j.JWKSFile != "":
		k.require(false, "auth.jwt.jwksUrl", "excludes jwksFile")
	case j.JWKSURL != "":
		if _, err := auth.NewJWT(j.Options()); err != nil {
			k.require(false, "auth.jwt.jwksUrl", strings.TrimPrefix(err.Error(), "httpapi: "))
		}
	case strings.ContainsAny(j.JWKSFile, "\n{"):
		k.require(false, "auth.jwt.jwksFile", "must be a file's path, not its content")
	default:
		if _, err := auth.NewJWT(j.Options()); err != nil {
			k.require(false, "auth.jwt.jwksFile", strings.TrimPrefix(err.Error(), "httpapi: "))
		}
	}
}

func (k *checker) checkCORS() {
	for i, origin := range k.config.CORS.Origins {
		path := index("cors.origins", i)
		if err := httpapi.ValidateOrigin(origin); err != nil {
			k.require(false, path, err.Error())
		}
		k.require(origin != "*" || k.config.Auth.Configured(), path,
			"every web page could use this server: needs auth.tokens or auth.jwt")
	}
}
