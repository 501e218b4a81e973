package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Times of a key set that is fetched from a URL.
const (
	jwksFresh   = 15 * time.Minute // how long it counts without being fetched again
	jwksKept    = 24 * time.Hour   // how long it counts while it can't be fetched
	jwksPause   = 10 * time.Second // between two fetches
	jwksTimeout = 5 * time.Second  // of a fetch
)

// keyURL are keys that are fetched when a token needs them. Requests that come
// while one of them fetches use the keys that there are, or wait for the fetch.
type keyURL struct {
	url    string
	client *http.Client

	fetching sync.Mutex // one fetch at a time; taken before mu

	mu      sync.Mutex
	keys    *keySet   // nil: none were ever fetched
	fetched time.Time // when keys were
	tried   time.Time // when the last fetch began
	err     error     // of the last fetch
}

func newKeyURL(o JWTOptions) (*keyURL, error) {
	if err := validateJWKSURL(o.JWKSURL); err != nil {
		return nil, err
	}
	if o.Issuer == "" || o.Audience == "" {
		return nil, errors.New("a key set from a URL needs an issuer and an audience")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	return &keyURL{url: o.JWKSURL, client: &http.Client{
		Transport: transport, Timeout: jwksTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// keep takes over what another one of the same URL has fetched.
func (k *keyURL) keep(from *keyURL) {
	if k.url != from.url {
		return
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	if from.keys != nil {
		k.keys = newKeySet(from.keys.keys) // what tokens may do depends on the options
	}
	k.fetched, k.tried, k.err = from.fetched, from.tried, from.err
}

// validateJWKSURL refuses a URL from which keys can't be fetched safely.
func validateJWKSURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" {
		return errors.New("the key set's URL must be absolute, without user and password")
	}
	ip := net.ParseIP(u.Hostname())
	local := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return errors.New("the key set's URL must be https, or http on a loopback address")
	}
	return nil
}

// current fetches the keys if they are old and no other request does yet.
func (k *keyURL) current(now time.Time) (*keySet, error) {
	keys, fresh, _ := k.state(now)
	switch {
	case fresh:
		return keys, nil
	case keys == nil:
		k.fetching.Lock()
	case !k.fetching.TryLock():
		return keys, nil
	}
	defer k.fetching.Unlock()
	return k.fetch(now)
}

// newer fetches the keys once more, if that was not just done.
func (k *keyURL) newer(now time.Time, than *keySet) *keySet {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	keys, _, may := k.state(now)
	if keys == than && may {
		keys, _ = k.fetch(now)
	}
	if keys == than {
		return nil
	}
	return keys
}

// state returns the keys that count, nil if there are none, whether they are
// fresh, and whether they may be fetched.
func (k *keyURL) state(now time.Time) (keys *keySet, fresh, may bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	age := now.Sub(k.fetched)
	if k.keys != nil && age < jwksKept {
		keys = k.keys
	}
	return keys, keys != nil && age < jwksFresh, k.tried.IsZero() || now.Sub(k.tried) >= jwksPause
}

// fetch returns the keys as they are now or, if they can't be fetched, the last
// ones. The caller holds fetching.
func (k *keyURL) fetch(now time.Time) (*keySet, error) {
	keys, _, may := k.state(now)
	if may {
		k.mu.Lock()
		k.tried = now
		k.mu.Unlock()
		set, err := k.get()
		k.mu.Lock()
		if k.err = err; err == nil {
			k.keys, k.fetched = set, now
			keys = set
		}
		k.mu.Unlock()
	}
	if keys == nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		return nil, fmt.Errorf("%w: %w", errNoKeys, k.err)
	}
	return keys, nil
}

// errNoKeys refuses tokens while there are no keys to check them with.
var errNoKeys = &Refusal{Status: http.StatusServiceUnavailable, Message: "the keys that tokens are checked with can't be fetched now"}

// get fetches a key set. Its errors don't name the URL's query, which may hold a
// secret.
func (k *keyURL) get() (*keySet, error) {
	ctx, cancel := context.WithTimeout(context.Background(), jwksTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, errors.New("the key set's URL is not valid")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := k.client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err
	}
	if err != nil {
		return nil, fmt.Errorf("the key set can't be fetched: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the key set can't be fetched: status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxJWKS+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the key set can't be fetched: %w", err)
	case len(raw) > maxJWKS:
		return nil, fmt.Errorf("the key set has more than %d bytes", maxJWKS)
	}
	keys, err := parseJWKS(raw)
	if err != nil {
		return nil, err
	}
	return newKeySet(keys), nil
}
