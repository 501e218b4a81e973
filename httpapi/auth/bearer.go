package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// Token is a bearer token and what it may do. In Operations and Sessions, *
// matches any text, slashes included; all other characters match themselves. An empty list
// allows nothing.
type Token struct {
	Token      string // never matches if empty
	Name       string // distinguishes tokens; not a secret
	Operations []string
	Sessions   []string
	User       string // of whom it is; empty: of no user in particular
	Tenant     string // empty: of none
}

// BearerTokens authenticates by the header "Authorization: Bearer <token>".
// Tokens are compared in constant time. If one is given several times, any of
// the entries may allow.
func BearerTokens(tokens []Token) Authenticator {
	match := matcher(tokens)
	return func(r *http.Request, op Operation, session string) error {
		own := match(r)
		switch {
		case len(own) == 0:
			return ErrUnauthorized
		case !slices.ContainsFunc(own, func(t Token) bool { return t.allows(op, session) }):
			return ErrForbidden
		}
		return nil
	}
}

// TokenCallers identifies callers by the header "Authorization: Bearer <token>".
// Of a token that is given several times, the first entry counts, but any of them
// may grant [OpActAs].
func TokenCallers(tokens []Token) Identifier {
	match := matcher(tokens)
	return func(r *http.Request) (Caller, error) {
		own := match(r)
		if len(own) == 0 {
			return Caller{}, ErrUnauthorized
		}
		first := own[0]
		return Caller{Name: first.Name, User: first.User, Tenant: first.Tenant, ActAs: slices.ContainsFunc(own, Token.actsAs), known: true}, nil
	}
}

// matcher returns a function that returns those of the tokens that a request has, in their order.
func matcher(tokens []Token) func(*http.Request) []Token {
	tokens = slices.Clone(tokens)
	sums := make([][sha256.Size]byte, len(tokens))
	for i, t := range tokens {
		sums[i] = sha256.Sum256([]byte(t.Token))
	}
	return func(r *http.Request) (own []Token) {
		given := BearerOf(r)
		if given == "" {
			return nil
		}
		sum := sha256.Sum256([]byte(given))
		for i, t := range tokens { // all of them, so that the time does not depend on which one matches
			if subtle.ConstantTimeCompare(sum[:], sums[i][:]) == 1 {
				own = append(own, t)
			}
		}
		return own
	}
}

// actsAs reports whether the operations list OpActAs by its name.
func (t Token) actsAs() bool { return slices.Contains(t.Operations, string(OpActAs)) }

// BearerOf returns the request's bearer token, or "". A header that is given
// twice counts as none: a proxy in front may have checked the other one.
func BearerOf(r *http.Request) string {
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// allows also refuses a token that may use no session, while none is named.
func (t Token) allows(op Operation, session string) bool {
	if session == "" {
		return anyGlob(t.Operations, string(op)) && len(t.Sessions) > 0
	}
	return anyGlob(t.Operations, string(op)) && anyGlob(t.Sessions, session)
}

func anyGlob(globs []string, s string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return glob(g, s) })
}

// glob matches with the stars taken shortest first; only the last one is ever
// tried again, so that no pattern is slow.
func glob(pattern, s string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, parts[len(parts)-1])
}
