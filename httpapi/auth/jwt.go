package auth

import (
	"cmp"
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

	"github.com/helixd/helixd/eventlog"
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
	// JWKSFile is a JSON Web Key Set, JWKS its content, or JWKSURL where it is
	// found: exactly one. The file is looked at when a request comes, at most once a second, and read
	// again if it has changed. Replace it by a rename: while it can't be read
	// or is not valid, every token is refused with INTERNAL_ERROR.
	JWKSFile string
	JWKS     []byte
	// JWKSURL is an https URL, or an http URL of a loopback address, without user
	// and password. It needs Issuer and Audience. The set is fetched when the first
	// token comes and kept for 15 minutes. A key id that it lacks has it fetched at
	// once, every 10 s at most. While it can't be fetched, the last set counts for
	// 24 hours; then tokens are refused with status 503.
	JWKSURL string

	Issuer   string // the claim iss must be it; empty: any or none
	Audience string // the claim aud must have it; empty: any or none

	SessionsClaim   string // empty: DefaultSessionsClaim
	OperationsClaim string // empty: DefaultOperationsClaim

	// UserIDClaim names the claim that holds the caller's user, such as "sub", a
	// string of 1 to 256 bytes. A token without it is refused, unless its
	// operations list [OpActAs]. Empty: tokens have no user.
	UserIDClaim string
	// TenantClaim names the claim that holds the caller's tenant, a string of 1 to
	// 256 bytes; a token without it is refused. Empty: tokens have no tenant.
	TenantClaim string

	// Leeway is how far clocks may be apart; 0: DefaultJWTLeeway; negative:
	// not at all.
	Leeway time.Duration
	Now    func() time.Time // nil: time.Now
}

// JWT authenticates and identifies callers by JSON Web Tokens.
type JWT struct {
	o    JWTOptions
	keys keySource
}

// keySource has the keys that tokens are checked with.
type keySource interface {
	// current returns the keys that count now.
	current(now time.Time) (*keySet, error)
	// newer returns keys that are newer than those that lack the key of a token, or
	// nil if there are none.
	newer(now time.Time, than *keySet) *keySet
}

// NewJWT returns what authenticates by the header "Authorization: Bearer <JWT>". A token
// is signed by the key of the set that its kid names (none: by one without
// kid), with an algorithm that the key allows: RS*, PS*, ES* or EdDSA. It must
// say when it expires (exp); nbf and iat count if they are there.
//
// What its bearer may do is in two claims, with globs as [Token] has them:
// arrays of strings, or for the operations one string with spaces between
// them. Without one of them, or if it is of another form, that is nothing.
//
// Errors, which don't name the file: not exactly one of JWKSFile, JWKS and
// JWKSURL; a set that can't be read or is not valid. The URL is not opened.
func NewJWT(o JWTOptions) (*JWT, error) {
	o.SessionsClaim = cmp.Or(o.SessionsClaim, DefaultSessionsClaim)
	o.OperationsClaim = cmp.Or(o.OperationsClaim, DefaultOperationsClaim)
	o.Leeway = cmp.Or(o.Leeway, DefaultJWTLeeway)
	o.Leeway = max(o.Leeway, 0)
	if o.Now == nil {
		o.Now = time.Now
	}
	keys, err := keysOf(o)
	if err != nil {
		return nil, fmt.Errorf("httpapi: %w", err)
	}
	return &JWT{o, keys}, nil
}

// KeepKeys takes over the keys that another one has fetched if both fetch them
// from the same URL, so that callers are served while there are no newer ones. Call
// it before the first request. From may be nil.
func (j *JWT) KeepKeys(from *JWT) {
	if from == nil {
		return
	}
	to, ok := j.keys.(*keyURL)
	if was, is := from.keys.(*keyURL); ok && is {
		to.keep(was)
	}
}

// Authenticate is an [Authenticator].
func (j *JWT) Authenticate(r *http.Request, op Operation, session string) error {
	token, err := j.token(r)
	if err != nil {
		return err
	}
	if !token.bearer.allows(op, session) {
		return ErrForbidden
	}
	return nil
}

// Identify is an [Identifier].
func (j *JWT) Identify(r *http.Request) (Caller, error) {
	token, err := j.token(r)
	if err != nil {
		return Caller{}, err
	}
	return Caller{
		Subject: token.claims.Subject, User: token.bearer.User, Tenant: token.bearer.Tenant, ActAs: token.bearer.actsAs(),
		Expires: token.claims.Expiry.Time().Add(j.o.Leeway), known: true,
	}, nil
}

// token returns the request's token, if it is valid now.
func (j *JWT) token(r *http.Request) (*signedToken, error) {
	raw := BearerOf(r)
	if len(raw) > maxJWT || strings.Count(raw, ".") != 2 {
		return nil, fmt.Errorf("%w: not a JWT", ErrUnauthorized)
	}
	now := j.o.Now()
	keys, err := j.keys.current(now)
	if err != nil {
		return nil, &KeysError{err}
	}
	token, err := keys.token(raw, j.o)
	if errors.Is(err, errUnknownKey) {
		if newer := j.keys.newer(now, keys); newer != nil {
			token, err = newer.token(raw, j.o)
		}
	}
	if err == nil {
		err = token.valid(now, j.o)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	return token, nil
}

// keysOf returns the keys that the options name.
func keysOf(o JWTOptions) (keySource, error) {
	given := 0
	for _, is := range []bool{o.JWKSFile != "", o.JWKS != nil, o.JWKSURL != ""} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, errors.New("the key set must be given once, as a file, as its content or as a URL")
	case o.JWKSURL != "":
		return newKeyURL(o)
	case o.JWKSFile != "":
		f := &keyFile{path: o.JWKSFile}
		_, err := f.current(o.Now())
		return f, err
	}
	keys, err := parseJWKS(o.JWKS)
	if err != nil {
		return nil, err
	}
	return fixedKeys{newKeySet(keys)}, nil
}

// KeysError says that there are no keys to check tokens with.
type KeysError struct{ Cause error }

func (e *KeysError) Error() string { return "httpapi: " + e.Cause.Error() }

func (e *KeysError) Unwrap() error { return e.Cause }

// fixedKeys never change.
type fixedKeys struct{ set *keySet }

func (f fixedKeys) current(time.Time) (*keySet, error) { return f.set, nil }

func (fixedKeys) newer(time.Time, *keySet) *keySet { return nil }

// errUnknownKey: none of the keys has the id that a token names.
var errUnknownKey = errors.New("none of the keys has its id")

// keySet are keys, and tokens that they have signed: a listing asks about
// each session again.
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
	known := false
	for _, key := range k.keys {
		known = known || key.id == head.KeyID
		if key.id != head.KeyID || !slices.Contains(key.algorithms, jose.SignatureAlgorithm(head.Algorithm)) {
			continue
		}
		token, own := new(signedToken), map[string]any{}
		if parsed.Claims(key.key, &token.claims, &own) != nil {
			continue
		}
		token.bearer = Token{Operations: operationsOf(own[o.OperationsClaim]), Sessions: textsOf(own[o.SessionsClaim])}
		token.bearer.User, token.bearer.Tenant = idOf(own, o.UserIDClaim), idOf(own, o.TenantClaim)
		return token, nil
	}
	if !known {
		return nil, errUnknownKey
	}
	return nil, errors.New("none of the keys has signed it")
}

// valid checks what depends on the time and the options.
func (t *signedToken) valid(now time.Time, o JWTOptions) error {
	switch {
	case t.claims.Expiry == nil:
		return errors.New("it does not say when it expires")
	case o.UserIDClaim != "" && t.bearer.User == "" && !t.bearer.actsAs():
		return errors.New("it does not say which user it is of")
	case o.TenantClaim != "" && t.bearer.Tenant == "":
		return errors.New("it does not say which tenant it is of")
	}
	expected := jwt.Expected{Issuer: o.Issuer, Time: now}
	if o.Audience != "" {
		expected.AnyAudience = jwt.Audience{o.Audience}
	}
	return t.claims.ValidateWithLeeway(expected, o.Leeway)
}

// idOf returns the id that a claim holds, or "".
func idOf(claims map[string]any, name string) string {
	id, _ := claims[name].(string)
	if name == "" || eventlog.ValidateID(id) != nil {
		return ""
	}
	return id
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
