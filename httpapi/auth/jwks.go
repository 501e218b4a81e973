package auth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxJWKS is the largest key set that is read, in bytes.
	maxJWKS = 1 << 20
	// minRSABits is the shortest RSA key that is taken (RFC 7518, 3.3).
	minRSABits = 2048
	// jwksInterval is how often the file is looked at, at most.
	jwksInterval = time.Second
)

// jwk is a public key that signatures are checked with.
type jwk struct {
	id         string // empty: for tokens that name no key
	key        any
	algorithms []jose.SignatureAlgorithm // never empty
}

// parseJWKS returns the keys of a set that can check signatures. Others are
// ignored (RFC 7517, 5), but for secret ones: they must not be there.
func parseJWKS(raw []byte) ([]jwk, error) {
	var set struct{ Keys []json.RawMessage }
	if json.Unmarshal(raw, &set) != nil || set.Keys == nil {
		return nil, errors.New(`the key set is not a JSON Web Key Set, {"keys": [...]}`)
	}
	var keys []jwk
	for i, raw := range set.Keys {
		key, ok, err := parseJWK(raw)
		if err != nil {
			return nil, fmt.Errorf("key %d of the key set %w", i+1, err)
		}
		if ok {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the key set has no key that can check signatures")
	}
	return keys, nil
}

func parseJWK(raw []byte) (k jwk, ok bool, err error) {
	var about struct {
		Kty, Crv, Use string
		Ops           []string        `json:"key_ops"`
		D, K          json.RawMessage // secrets
	}
	switch {
	case json.Unmarshal(raw, &about) != nil:
		return jwk{}, false, errors.New("is not a JSON Web Key")
	case about.D != nil || about.K != nil:
		return jwk{}, false, errors.New("is secret: only public keys belong here")
	case about.Use != "" && about.Use != "sig", about.Ops != nil && !slices.Contains(about.Ops, "verify"):
		return jwk{}, false, nil
	case !slices.Contains([]string{"RSA", "EC P-256", "EC P-384", "EC P-521", "OKP Ed25519"}, strings.TrimSpace(about.Kty+" "+about.Crv)):
		return jwk{}, false, nil
	}
	var parsed jose.JSONWebKey
	if err := parsed.UnmarshalJSON(raw); err != nil {
		return jwk{}, false, fmt.Errorf("is not valid: %s", strings.TrimPrefix(err.Error(), "go-jose/go-jose: "))
	}
	k = jwk{id: parsed.KeyID, key: parsed.Key, algorithms: algorithmsOf(parsed.Key)}
	if rsaKey, ok := parsed.Key.(*rsa.PublicKey); ok && rsaKey.N.BitLen() < minRSABits {
		return jwk{}, false, fmt.Errorf("has fewer than %d bits", minRSABits)
	}
	if parsed.Algorithm != "" {
		own := jose.SignatureAlgorithm(parsed.Algorithm)
		if !slices.Contains(k.algorithms, own) {
			return jwk{}, false, nil
		}
		k.algorithms = []jose.SignatureAlgorithm{own}
	}
	return k, true, nil
}

// algorithmsOf returns the algorithms that a key's type allows.
func algorithmsOf(key any) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512}
	case *ecdsa.PublicKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		}
		return []jose.SignatureAlgorithm{jose.ES512}
	case ed25519.PublicKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	}
	return nil
}

// readJWKS returns a file's content. Errors don't name the file.
func readJWKS(path string) ([]byte, fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("the key set is not a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, withoutPath(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxJWKS+1))
	switch {
	case err != nil:
		return nil, nil, withoutPath(err)
	case len(raw) > maxJWKS:
		return nil, nil, fmt.Errorf("the key set has more than %d bytes", maxJWKS)
	}
	return raw, info, nil
}

func withoutPath(err error) error {
	if problem, ok := errors.AsType[*fs.PathError](err); ok {
		err = problem.Err
	}
	return fmt.Errorf("the key set can't be read: %w", err)
}

// keyFile is a file of keys that follows its changes.
type keyFile struct {
	path string

	mu     sync.Mutex
	looked time.Time
	was    fs.FileInfo // what keys were read from
	keys   *keySet     // nil: err says why
	err    error
}

// current returns the file's keys, as of a second ago at most. A file that
// has gone bad has none: what was taken out of it must not count any more.
func (f *keyFile) current(now time.Time) (*keySet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if since := now.Sub(f.looked); f.looked.IsZero() || since < 0 || since >= jwksInterval {
		f.looked = now
		f.look()
	}
	return f.keys, f.err
}

// newer returns nil: a file is looked at often enough.
func (f *keyFile) newer(time.Time, *keySet) *keySet { return nil }

func (f *keyFile) look() {
	if info, err := os.Stat(f.path); err == nil && f.keys != nil && sameFile(info, f.was) {
		return
	}
	f.keys, f.was, f.err = nil, nil, nil
	raw, info, err := readJWKS(f.path)
	if err != nil {
		f.err = err
		return
	}
	keys, err := parseJWKS(raw)
	if err != nil {
		f.err = err
		return
	}
	f.keys, f.was = newKeySet(keys), info
}

func sameFile(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
