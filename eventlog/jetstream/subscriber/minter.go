package subscriber

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/layout"
)

// The duration of a right.
const (
	DefaultTTL = time.Hour
	MinTTL     = time.Second
	MaxTTL     = 24 * time.Hour
)

const (
	// maxSubscriptions bounds a connection's subscriptions: one is needed, and a client
	// may subscribe again before it has unsubscribed.
	maxSubscriptions = 4
	// maxPayload bounds what a connection may publish at once, in bytes, if it may
	// publish at all: more ends it.
	maxPayload = 1 << 10
)

// ErrTTL: a duration is not in the range from MinTTL to MaxTTL.
var ErrTTL = errors.New("subscriber: a right lasts from " + MinTTL.String() + " to " + MaxTTL.String())

// Options configure a Minter.
type Options struct {
	// Account is the public id (A…) of the account for which the key signs. Empty: the
	// key is the account's own, or the server is the embedded one.
	Account string
	// TTL is how long rights last by default; 0: DefaultTTL.
	TTL time.Duration
	Now func() time.Time // nil: time.Now
}

// Minter issues rights. It may be used from many goroutines.
type Minter struct {
	key    nkeys.KeyPair
	public string
	opts   Options
}

// New returns a minter that signs with an account's key, or with one of its
// signing keys, given as its seed (SA…). Errors don't show the seed.
func New(seed string, o *Options) (*Minter, error) {
	m := &Minter{}
	if o != nil {
		m.opts = *o
	}
	m.opts.TTL = cmp.Or(m.opts.TTL, DefaultTTL)
	if m.opts.Now == nil {
		m.opts.Now = time.Now
	}
	if m.opts.TTL < MinTTL || m.opts.TTL > MaxTTL {
		return nil, ErrTTL
	}
	if a := m.opts.Account; a != "" && !nkeys.IsValidPublicAccountKey(a) {
		return nil, errors.New("subscriber: the account must be an account's public key (A…)")
	}
	var err error
	if m.key, err = nkeys.FromSeed([]byte(seed)); err != nil {
		return nil, errors.New("subscriber: the signing key must be the seed of an account's key (SA…)")
	}
	if m.public, err = m.key.PublicKey(); err != nil || !nkeys.IsValidPublicAccountKey(m.public) {
		return nil, errors.New("subscriber: the signing key must be the seed of an account's key (SA…)")
	}
	if m.opts.Account == m.public {
		m.opts.Account = "" // the account's own key needs no mention of the account
	}
	return m, nil
}

// NewKey returns the seed of a fresh signing key.
func NewKey() (seed string, err error) {
	key, err := nkeys.CreateAccount()
	if err != nil {
		return "", fmt.Errorf("subscriber: make a key: %w", err)
	}
	raw, err := key.Seed()
	if err != nil {
		return "", fmt.Errorf("subscriber: make a key: %w", err)
	}
	return string(raw), nil
}

// PublicKey is the key by which servers know the minter (A…).
func (m *Minter) PublicKey() string { return m.public }

// Right lets a NATS client receive one session's live records. Seed and Creds are secret.
type Right struct {
	Subject   string // the only subject to which it may subscribe
	JWT       string
	Seed      string // of the user's key, by which the client proves that the JWT is its own
	Creds     string // both, as the text of a .creds file
	ExpiresAt time.Time
}

// Mint issues a right to receive a session's live records, whether the session exists or not. ttl
// 0 means the minter's default. The generation is that of [Revocations.Generation], 0
// where helixd can't revoke rights: the next revocation revokes the right. Errors:
// [ErrTTL], an [eventlog.ValidationError], failures of the random source.
func (m *Minter) Mint(session string, generation uint64, ttl time.Duration) (Right, error) {
	if err := eventlog.ValidateClientSessionID(session); err != nil {
		return Right{}, err
	}
	ttl = cmp.Or(ttl, m.opts.TTL)
	if ttl < MinTTL || ttl > MaxTTL {
		return Right{}, ErrTTL
	}
	user, err := nkeys.CreateUser()
	if err != nil {
		return Right{}, fmt.Errorf("subscriber: make a key: %w", err)
	}
	public, err := user.PublicKey()
	if err != nil {
		return Right{}, fmt.Errorf("subscriber: make a key: %w", err)
	}
	seed, err := user.Seed()
	if err != nil {
		return Right{}, fmt.Errorf("subscriber: make a key: %w", err)
	}
	// A JWT has whole seconds; it is rounded up, so that it lasts at least ttl.
	expires := m.opts.Now().Add(ttl + time.Second - 1).Truncate(time.Second)
	right := Right{Subject: layout.LiveSubject(session), Seed: string(seed), ExpiresAt: expires.UTC()}
	if right.JWT, err = m.claims(public, right.Subject, expires, generation).Encode(m.key); err != nil {
		return Right{}, fmt.Errorf("subscriber: sign: %w", err)
	}
	creds, err := jwt.FormatUserConfig(right.JWT, seed)
	if err != nil {
		return Right{}, fmt.Errorf("subscriber: %w", err)
	}
	right.Creds = string(creds)
	return right, nil
}

// claims is everything that a subscriber may do. The generation is in the name and the
// session is not: a long session id would not fit twice into the line with which a client
// connects.
func (m *Minter) claims(user, subject string, expires time.Time, generation uint64) *jwt.UserClaims {
	c := jwt.NewUserClaims(user)
	if generation > 0 {
		c.Name = strconv.FormatUint(generation, 10)
	}
	c.IssuerAccount = m.opts.Account
	c.Expires = expires.Unix()
	c.Sub.Allow = jwt.StringList{subject}
	c.Pub.Deny = jwt.StringList{">"}
	c.NatsLimits = jwt.NatsLimits{Subs: maxSubscriptions, Data: jwt.NoLimit, Payload: maxPayload}
	c.AllowedConnectionTypes = slices.Clone(connectionTypes)
	return c
}

var connectionTypes = jwt.StringList{jwt.ConnectionTypeStandard, jwt.ConnectionTypeWebsocket}
