// Package auth identifies the caller of a request, and decides what the caller may do.
//
// A server has one [Authenticator] and one [Identifier]. The package has two kinds of
// them, [BearerTokens] with [TokenCallers] for tokens that are configured, and [JWT] for
// signed ones; [AnyOf] and [AnyCaller] join them.
package auth
