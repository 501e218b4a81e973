package config

import (
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/helixd/helixd/httpapi"
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
	}
	k.checkJWT()
	k.checkCORS()
}

// isBlank reports whether a character would be lost, or refused, in a header.
func isBlank(c rune) bool { return unicode.IsSpace(c) || unicode.IsControl(c) }

// matchesOperation asks those who will decide about requests.
func matchesOperation(glob string) bool {
	auth := httpapi.BearerTokens([]httpapi.Token{{Token: "t", Operations: []string{glob}, Sessions: []string{"*"}}})
	r := &http.Request{Header: http.Header{"Authorization": {"Bearer t"}}}
	return slices.ContainsFunc(httpapi.Operations(), func(op httpapi.Operation) bool { return auth(r, op, "s") == nil })
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
	case j.JWKSFile == "":
		k.needed(false, "auth.jwt", "needs a jwksFile")
	case strings.ContainsAny(j.JWKSFile, "\n{"):
		k.require(false, "auth.jwt.jwksFile", "must be a file's path, not its content")
	default:
		if _, err := httpapi.JWTAuth(j.Options()); err != nil {
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
