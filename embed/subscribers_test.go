package embed_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
	"github.com/helixd/helixd/eventlog/logtest"
	"github.com/helixd/helixd/integration/testkit"
)

// minter returns one with its own key, and the option to trust it.
func minter(t *testing.T) (*subscriber.Minter, []string) {
	t.Helper()
	key, err := subscriber.NewKey()
	require.NoError(t, err)
	m, err := subscriber.New(key, nil)
	require.NoError(t, err)
	return m, []string{m.PublicKey()}
}

func mint(t *testing.T, m *subscriber.Minter, session string) subscriber.Right {
	t.Helper()
	r, err := m.Mint(session, 0, 0)
	require.NoError(t, err)
	return r
}

func as(r subscriber.Right) nats.Option { return nats.UserJWTAndSeed(r.JWT, r.Seed) }

func TestSubscriberHearsItsSession(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]embed.Options{
		"live only": {}, "AllowRead": {AllowRead: true}, "with a user": {User: "ops", Password: "secret"},
	} {
		t.Run(name, func(t *testing.T) {
			m, keys := minter(t)
			o.Subscribers = keys
			srv, _, log := served(t, o)
			right := mint(t, m, "s")
			out := outside(t, srv, as(right))
			sub, err := out.SubscribeSync(right.Subject)
			require.NoError(t, err)
			require.NoError(t, out.Flush())
			e := logtest.Text("s", "second")
			_, err = log.Append(t.Context(), "s", 1, []eventlog.Entry{e})
			require.NoError(t, err)
			got, err := sub.NextMsg(time.Minute)
			require.NoError(t, err)
			require.Equal(t, e.Payload, got.Data)
		})
	}
}

// Rights that do not hold are refused, and do not make their bearer one of
// those without credentials.
func TestRightsThatDoNotHold(t *testing.T) {
	t.Parallel()
	key, err := nkeys.CreateAccount()
	require.NoError(t, err)
	seed, err := key.Seed()
	require.NoError(t, err)
	m, err := subscriber.New(string(seed), nil)
	require.NoError(t, err)
	stranger, _ := minter(t)
	srv, _, _ := served(t, embed.Options{Subscribers: []string{m.PublicKey()}})
	right, other := mint(t, m, "s"), mint(t, m, "s2")
	nc, err := nats.Connect(srv.ClientURL(), as(right), nats.Timeout(patience))
	require.NoError(t, err, "the cases differ from this")
	nc.Close()

	rights := map[string]nats.Option{
		"another key":          as(mint(t, stranger, "s")),
		"another's seed":       nats.UserJWTAndSeed(right.JWT, other.Seed),
		"no signature":         nats.UserJWT(func() (string, error) { return right.JWT, nil }, func([]byte) ([]byte, error) { return nil, nil }),
		"no token":             nats.UserJWTAndSeed("x", right.Seed),
		"another's signature":  nats.UserJWTAndSeed(spliced(right.JWT, other.JWT), right.Seed),
		"an unsigned one":      nats.UserJWTAndSeed(right.JWT[:strings.LastIndex(right.JWT, ".")+1], right.Seed),
		"a changed content":    nats.UserJWTAndSeed(spliced(other.JWT, right.JWT), other.Seed),
		"a nonce of elsewhere": nats.UserJWT(func() (string, error) { return right.JWT, nil }, func([]byte) ([]byte, error) { return signedBy(t, right.Seed, "another nonce") }),
	}
	for name, change := range map[string]func(*jwt.UserClaims){
		"expired":             func(c *jwt.UserClaims) { c.Expires = time.Now().Add(-time.Second).Unix() },
		"for ever":            func(c *jwt.UserClaims) { c.Expires = 0 },
		"not yet":             func(c *jwt.UserClaims) { c.NotBefore = time.Now().Add(time.Hour).Unix() },
		"all sessions":        func(c *jwt.UserClaims) { c.Sub.Allow = jwt.StringList{"helix.live.>"} },
		"any session":         func(c *jwt.UserClaims) { c.Sub.Allow = jwt.StringList{"helix.live.*"} },
		"two sessions":        func(c *jwt.UserClaims) { c.Sub.Allow.Add("helix.live.s2") },
		"everything":          func(c *jwt.UserClaims) { c.Sub.Allow = nil },
		"the log":             func(c *jwt.UserClaims) { c.Sub.Allow = jwt.StringList{"helix.log.0.s"} },
		"a queue group":       func(c *jwt.UserClaims) { c.Sub.Allow = jwt.StringList{"helix.live.s q"} },
		"below a session":     func(c *jwt.UserClaims) { c.Sub.Allow = jwt.StringList{"helix.live.s.x"} },
		"an empty session":    func(c *jwt.UserClaims) { c.Sub.Allow = jwt.StringList{"helix.live."} },
		"publishing":          func(c *jwt.UserClaims) { c.Pub.Deny = nil },
		"publishing a little": func(c *jwt.UserClaims) { c.Pub.Allow = jwt.StringList{"$JS.API.>"} },
		"answering":           func(c *jwt.UserClaims) { c.Resp = &jwt.ResponsePermission{MaxMsgs: 1} },
		"a bearer's":          func(c *jwt.UserClaims) { c.BearerToken = true },
		"somewhere else":      func(c *jwt.UserClaims) { c.Src = jwt.CIDRList{"192.0.2.1/32"} },
		"by WebSocket only":   func(c *jwt.UserClaims) { c.AllowedConnectionTypes = jwt.StringList{jwt.ConnectionTypeWebsocket} },
		"another account's":   func(c *jwt.UserClaims) { c.IssuerAccount = stranger.PublicKey() },
	} {
		claims, err := jwt.DecodeUserClaims(right.JWT)
		require.NoError(t, err)
		change(claims)
		signed, err := claims.Encode(key)
		require.NoError(t, err)
		rights[name] = nats.UserJWTAndSeed(signed, right.Seed)
	}
	for name, o := range rights {
		requireNotLetIn(t, srv.ClientURL(), name, o)
	}
}

// spliced is a JWT with the signature of another.
func spliced(content, signature string) string {
	return content[:strings.LastIndex(content, ".")] + signature[strings.LastIndex(signature, "."):]
}

func signedBy(t *testing.T, seed, text string) ([]byte, error) {
	t.Helper()
	key, err := nkeys.FromSeed([]byte(seed))
	require.NoError(t, err)
	return key.Sign([]byte(text))
}

// Without Subscribers a JWT means nothing, as in any server that knows no
// operator: who has one is a client without credentials.
func TestNoSubscribers(t *testing.T) {
	t.Parallel()
	m, _ := minter(t)
	srv, _, _ := served(t, embed.Options{})
	outside(t, srv, as(mint(t, m, "s")))
	srv, _, _ = served(t, embed.Options{User: "ops", Password: "secret"})
	requireNotLetIn(t, srv.ClientURL(), "a right", as(mint(t, m, "s")))
}

func TestSubscribersKeyMustBeAnAccounts(t *testing.T) {
	for _, key := range []string{"", "x", mint(t, first(minter(t)), "s").Seed} {
		_, err := embed.Start(t.Context(), embed.Options{DataDir: t.TempDir(), Subscribers: []string{key}})
		require.ErrorContains(t, err, "no account's public key")
	}
}

func first(m *subscriber.Minter, _ []string) *subscriber.Minter { return m }

// The connection ends with the right.
func TestSubscriberExpires(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	m, keys := minter(t)
	srv, _, _ := served(t, embed.Options{Subscribers: keys})
	var right subscriber.Right
	closed, errs := make(chan struct{}), make(chan error, 16)
	for ttl := 2 * time.Second; ; ttl *= 2 { // a busy machine may come too late
		var err error
		right, err = m.Mint("s", 0, ttl)
		require.NoError(t, err)
		nc, err := nats.Connect(srv.ClientURL(), as(right), nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(closed) }),
			nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs <- err }))
		if err == nil {
			t.Cleanup(nc.Close)
			break
		}
		require.Less(t, ttl, patience, "%v", err)
	}
	select {
	case <-closed:
	case <-time.After(time.Minute):
		require.Fail(t, "it continues")
	}
	require.False(t, time.Now().Before(right.ExpiresAt))
	require.ErrorIs(t, <-errs, nats.ErrAuthExpired)
	requireNotLetIn(t, srv.ClientURL(), "too late", as(right))
}
