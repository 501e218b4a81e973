package subscriber_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

func newKey(t *testing.T) string {
	t.Helper()
	seed, err := subscriber.NewKey()
	require.NoError(t, err)
	return seed
}

// publicOf is the public key of a fresh one of a kind.
func publicOf(t *testing.T, create func() (nkeys.KeyPair, error)) (public, seed string) {
	t.Helper()
	key, err := create()
	require.NoError(t, err)
	public, err = key.PublicKey()
	require.NoError(t, err)
	raw, err := key.Seed()
	require.NoError(t, err)
	return public, string(raw)
}

func TestARightIsForOneSubject(t *testing.T) {
	account, _ := publicOf(t, nkeys.CreateAccount)
	now := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	m, err := subscriber.New(newKey(t), &subscriber.Options{
		Account: account, TTL: 10 * time.Minute, Now: func() time.Time { return now },
	})
	require.NoError(t, err)
	for session, subject := range map[string]string{
		"s-1_A": "helix.live.s-1_A", "*": "helix.live.%2A", ">": "helix.live.%3E", "a.b c": "helix.live.a%2Eb%20c", "é": "helix.live.%C3%A9",
		strings.Repeat("*", 256): "helix.live." + strings.Repeat("%2A", 256),
	} {
		right, err := m.Mint(session, 0, 0)
		require.NoError(t, err)
		require.Equal(t, subject, right.Subject)
		require.Equal(t, time.Date(2026, 1, 2, 3, 14, 6, 0, time.UTC), right.ExpiresAt, "no shorter than asked for")

		claims, err := jwt.DecodeUserClaims(right.JWT)
		require.NoError(t, err)
		require.Equal(t, m.PublicKey(), claims.Issuer)
		require.Equal(t, account, claims.IssuerAccount)
		require.Equal(t, right.ExpiresAt.Unix(), claims.Expires)
		require.Equal(t, jwt.Permissions{
			Pub: jwt.Permission{Deny: jwt.StringList{">"}}, Sub: jwt.Permission{Allow: jwt.StringList{subject}},
		}, claims.Permissions)
		require.Equal(t, jwt.StringList{"STANDARD", "WEBSOCKET"}, claims.AllowedConnectionTypes)
		require.False(t, claims.BearerToken, "the JWT alone is worth nothing")
		require.Less(t, len(right.JWT), 3<<10, "the line that a client connects with is at most 4 KiB")

		key, err := nkeys.FromSeed([]byte(right.Seed))
		require.NoError(t, err)
		public, err := key.PublicKey()
		require.NoError(t, err)
		require.Equal(t, claims.Subject, public)
		inCreds, err := jwt.ParseDecoratedJWT([]byte(right.Creds))
		require.NoError(t, err)
		require.Equal(t, right.JWT, inCreds)
		require.Contains(t, right.Creds, right.Seed)
		require.NotContains(t, right.JWT, right.Seed)
	}
}

func TestEachRightHasItsOwnUser(t *testing.T) {
	m, err := subscriber.New(newKey(t), nil)
	require.NoError(t, err)
	seen := map[string]bool{}
	for range 20 {
		right, err := m.Mint("s", 0, 0)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now().Add(subscriber.DefaultTTL), right.ExpiresAt, time.Minute)
		require.False(t, seen[right.Seed])
		seen[right.Seed] = true
	}
}

func TestMintRefuses(t *testing.T) {
	m, err := subscriber.New(newKey(t), nil)
	require.NoError(t, err)
	for _, ttl := range []time.Duration{-1, 1, time.Second - 1, 24*time.Hour + 1} {
		_, err := m.Mint("s", 0, ttl)
		require.ErrorIs(t, err, subscriber.ErrTTL)
	}
	for _, ttl := range []time.Duration{time.Second, 24 * time.Hour} {
		_, err := m.Mint("s", 0, ttl)
		require.NoError(t, err)
	}
	for _, session := range []string{"", "a\x00b", "a\nb", "\xff", strings.Repeat("x", 257)} {
		_, err := m.Mint(session, 0, 0)
		require.ErrorAs(t, err, new(*eventlog.ValidationError))
	}
}

func TestNewRefuses(t *testing.T) {
	account, accountSeed := publicOf(t, nkeys.CreateAccount)
	user, userSeed := publicOf(t, nkeys.CreateUser)
	_, operatorSeed := publicOf(t, nkeys.CreateOperator)
	for _, seed := range []string{"", "SAxyz", userSeed, operatorSeed, account, accountSeed[:len(accountSeed)-1], accountSeed + "A"} {
		_, err := subscriber.New(seed, nil)
		require.ErrorContains(t, err, "seed of an account's key")
		if seed != "" {
			require.NotContains(t, err.Error(), seed)
		}
	}
	for _, o := range []subscriber.Options{{TTL: -1}, {TTL: 25 * time.Hour}, {Account: "x"}, {Account: user}, {Account: accountSeed}} {
		_, err := subscriber.New(accountSeed, &o)
		require.Error(t, err)
		require.NotContains(t, err.Error(), accountSeed)
	}
	m, err := subscriber.New(accountSeed, &subscriber.Options{Account: account})
	require.NoError(t, err)
	right, err := m.Mint("s", 0, 0)
	require.NoError(t, err)
	claims, err := jwt.DecodeUserClaims(right.JWT)
	require.NoError(t, err)
	require.Empty(t, claims.IssuerAccount, "the account's own key signs for it without saying so")
}
