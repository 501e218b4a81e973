package httpapi

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Defaults of [JWTOptions].
const (
	DefaultSessionsClaim   = "helix_sessions"
	DefaultOperationsClaim = "helix_operations"
	DefaultJWTLeeway       = 30 * time.Second
)

const (
	// maxJWT is the longest token that is looked at, in bytes.
	maxJWT = 16 << 10
	// maxKnownTokens is how many tokens that were found good are remembered.
	maxKnownTokens = 1024
)

// JWTOptions say which JSON Web Tokens are taken, and which of their claims
// say what their bearer may do.
type JWTOptions struct {
	// JWKSFile is a JSON Web Key Set, or JWKS its content: exactly one. The
	// file is looked at when a request comes, at most once a second, and read
	// again if it has changed. Replace it by a rename: while it can't be read
	// or is not valid, every token is refused with INTERNAL_ERROR.
	JWKSFile string
	JWKS     []byte

	Issuer   string // the claim iss must be it; empty: any or none
	Audience string // the claim aud must have it; empty: any or none

	SessionsClaim   string // empty: DefaultSessionsClaim
	OperationsClaim string // empty: DefaultOperationsClaim

	// Leeway is how far clocks may be apart; 0: DefaultJWTLeeway; negative:
	// not at all.
	Leeway time.Duration
	Now    func() time.Time // nil: time.Now
}

// JWTAuth authenticates by the header "Authorization: Bearer <JWT>". A token
// is signed by the key of the set that its kid names (none: by one without
// kid), with an algorithm that the key allows: RS*, PS*, ES* or EdDSA. It must
// say when it expires (exp); nbf and iat count if they are there.
//
// What its bearer may do is in two claims, with globs as [Token] has them:
// arrays of strings, or for the operations one string with spaces between
// them. Without one of them, or if it is of another form, that is nothing.
//
// Errors, which don't name the file: neither or both of JWKSFile and JWKS; a
// set that can't be read or is not valid.
func JWTAuth(o JWTOptions) (Authenticator, error) {
	if o.SessionsClaim == "" {
		o.SessionsClaim = DefaultSessionsClaim
	}
	if o.OperationsClaim == "" {
		o.OperationsClaim = DefaultOperationsClaim
	}
	if o.Leeway == 0 {
		o.Leeway = DefaultJWTLeeway
	}
	o.Leeway = max(o.Leeway, 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	current, err := keysOf(o)
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return func(r *http.Request, op Operation, session string) error {
		raw := bearerOf(r)
		if len(raw) > maxJWT || strings.Count(raw, ".") != 2 {
			return fmt.Errorf("%w: not a JWT", ErrUnauthorized)
		}
		now := o.Now()
		keys, err := current(now)
		if err != nil {
			return fmt.Errorf("httpapi: %w", err)
		}
		token, err := keys.token(raw, o)
		if err == nil {
			err = token.valid(now, o)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnauthorized, err)
		}
		if !token.bearer.allows(op, session) {
			return ErrForbidden
		}
		return nil
	}, nil
}

// keysOf returns what returns the keys that count now.
func keysOf(o JWTOptions) (func(now time.Time) (*keySet, error), error) {
	switch {
	case (o.JWKSFile == "") == (o.JWKS == nil):
		return nil, errors.New("the key set must be given once, as a file or as its content")
	case o.JWKSFile != "":
		f := &keyFile{path: o.JWKSFile}
		_, err := f.current(o.Now())
		return f.current, err
	}
	keys, err := parseJWKS(o.JWKS)
	if err != nil {
		return nil, err
	}
	set := newKeySet(keys)
	return func(time.Time) (*keySet, error) { return set, nil }, nil
}

// keySet are keys, and tokens that they have signed: a listing asks about
// each session anew.
type keySet struct {
	keys []jwk

	mu    sync.Mutex
	known map[[sha256.Size]byte]*signedToken
}

func newKeySet(keys []jwk) *keySet {
	return &keySet{keys: keys, known: map[[sha256.Size]byte]*signedToken{}}
}

// signedToken is a token with a good signature.
type signedToken struct {
	claims jwt.Claims
	bearer Token // what it may do
}

// token returns a token that one of the keys has signed.
func (k *keySet) token(raw string, o JWTOptions) (*signedToken, error) {
	sum := sha256.Sum256([]byte(raw))
	k.mu.Lock()
	token := k.known[sum]
	k.mu.Unlock()
	if token != nil {
		return token, nil
	}
	token, err := k.verify(raw, o)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.known) >= maxKnownTokens {
		clear(k.known)
	}
	k.known[sum] = token
	return token, nil
}

func (k *keySet) verify(raw string, o JWTOptions) (*signedToken, error) {
	var all []jose.SignatureAlgorithm
	for _, key := range k.keys {
		all = append(all, key.algorithms...)
	}
	parsed, err := jwt.ParseSigned(raw, all)
	if err != nil {
		return nil, errors.New("it can't be read, or its algorithm is none of the keys'")
	}
	head := parsed.Headers[0]
	if _, critical := head.ExtraHeaders["crit"]; critical {
		return nil, errors.New("it demands an extension")
	}
	for _, key := range k.keys {
		if key.id != head.KeyID || !slices.Contains(key.algorithms, jose.SignatureAlgorithm(head.Algorithm)) {
			continue
		}
		token, own := new(signedToken), map[string]any{}
		if parsed.Claims(key.key, &token.claims, &own) != nil {
			continue
		}
		token.bearer = Token{Operations: operationsOf(own[o.OperationsClaim]), Sessions: textsOf(own[o.SessionsClaim])}
		return token, nil
	}
	return nil, errors.New("none of the keys has signed it")
}

// valid checks what depends on the time and the options.
func (t *signedToken) valid(now time.Time, o JWTOptions) error {
	if t.claims.Expiry == nil {
		return errors.New("it does not say when it expires")
	}
	expected := jwt.Expected{Issuer: o.Issuer, Time: now}
	if o.Audience != "" {
		expected.AnyAudience = jwt.Audience{o.Audience}
	}
	return t.claims.ValidateWithLeeway(expected, o.Leeway)
}

// textsOf returns an array of strings, or nothing.
func textsOf(claim any) []string {
	items, _ := claim.([]any)
	var texts []string
	for _, item := range items {
		text, ok := item.(string)
		if !ok {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

func operationsOf(claim any) []string {
	if text, ok := claim.(string); ok {
		return strings.Fields(text)
	}
	return textsOf(claim)
}
