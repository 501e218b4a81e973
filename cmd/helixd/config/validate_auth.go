package config

import (
	"strings"

	"github.com/helixd/helixd/httpapi"
)

func (k *checker) checkAuth() {
	for i, t := range k.config.Auth.Tokens {
		path := index("auth.tokens", i)
		k.require(!t.Token.IsZero(), path+".token", "must not be empty")
		k.checkGlobs(t.Operations, path+".operations")
		k.checkGlobs(t.Sessions, path+".sessions")
	}
	k.checkJWT()
	k.checkCORS()
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
