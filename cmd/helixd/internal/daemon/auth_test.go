package daemon

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
)

// serveWithKeys writes a helix.yaml with a key set, and returns it with the
// key that signs for it.
func serveWithKeys(t *testing.T, text string) (*config.Config, ed25519.PrivateKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k"}}})
	require.NoError(t, err)
	dir := t.TempDir()
	t.Chdir(dir) // what jwksFile is relative to
	require.NoError(t, os.WriteFile("keys.json", keys, 0o600))
	path := filepath.Join(dir, "helix.yaml")
	require.NoError(t, os.WriteFile(path, []byte("listen: 127.0.0.1:0\ndurability: interval=1s\n"+text), 0o600))
	c, err := config.Load(path, nil)
	require.NoError(t, err)
	return c, private
}

func jwtFor(t *testing.T, key ed25519.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
	require.NoError(t, err)
	payload, err := json.Marshal(claims)
	require.NoError(t, err)
	object, err := signer.Sign(payload)
	require.NoError(t, err)
	token, err := object.CompactSerialize()
	require.NoError(t, err)
	return token
}

// TestDaemonAuth: auth.tokens, auth.jwt and cors.origins reach the server.
func TestDaemonAuth(t *testing.T) {
	c, key := serveWithKeys(t, `
auth:
  tokens: [{token: t0ken, sessions: [mine]}]
  jwt: {jwksFile: keys.json, issuer: "https://id.example", audience: helixd, operationsClaim: scope}
cors: {origins: ["https://app.example"]}
`)
	c.DataDir = t.TempDir()
	d, err := Start(t.Context(), c, nil, false, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- d.Run(ctx, nil) }()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	status := func(session, token string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.URL+"/status?sessionId="+session, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		req.Header.Set("Origin", "https://app.example")
		resp, err := client.Do(req)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, "https://app.example", resp.Header.Get("Access-Control-Allow-Origin"))
		require.NotEmpty(t, resp.Header.Get("X-Request-Id"))
		return resp.StatusCode
	}
	claims := func(audience string) map[string]any {
		return map[string]any{
			"iss": "https://id.example", "aud": audience, "exp": time.Now().Add(time.Hour).Unix(),
			"helix_sessions": []string{"yours"}, "scope": "openid status",
		}
	}
	good := jwtFor(t, key, claims("helixd"))
	require.Equal(t, 404, status("mine", "t0ken"))
	require.Equal(t, 403, status("yours", "t0ken"))
	require.Equal(t, 404, status("yours", good))
	require.Equal(t, 403, status("mine", good))
	require.Equal(t, 401, status("yours", jwtFor(t, key, claims("another service"))))
	require.Equal(t, 401, status("yours", "wrong"))
	stop()
	require.NoError(t, <-stopped)
}

// A reload continues with the keys of the same URL, also while that does not answer.
func TestAReloadKeepsFetchedKeys(t *testing.T) {
	_, key := serveWithKeys(t, "auth: {allowUnauthenticated: true}\n")
	keys, err := os.ReadFile("keys.json")
	require.NoError(t, err)
	var down atomic.Bool
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(500)
		}
		_, _ = w.Write(keys)
	}))
	defer provider.Close()
	path := clitest.Config(t, fmt.Sprintf("auth: {tokens: [{token: t0ken}], jwt: {jwksUrl: %q, issuer: i, audience: a}}\n", provider.URL))
	d := serveFile(t, path, io.Discard, nil)
	good := jwtFor(t, key, map[string]any{
		"iss": "i", "aud": "a", "exp": time.Now().Add(time.Hour).Unix(), "helix_sessions": []string{"*"}, "helix_operations": []string{"*"},
	})
	status := func() int {
		t.Helper()
		got, _ := ask(t, http.MethodGet, d.URL+"/status?sessionId=s", good, "", "")
		return got
	}
	require.Equal(t, 404, status())
	down.Store(true)
	for range 2 { // the second one keeps what the first has kept
		reloaded(t, d, "t0ken", 200)
		require.Equal(t, 404, status())
	}
}

// TestDaemonNeedsAuth: a JWT's keys are authentication, and so is nothing else
// but tokens.
func TestDaemonNeedsAuth(t *testing.T) {
	c, _ := serveWithKeys(t, "auth: {jwt: {jwksFile: keys.json}}\n")
	configured, err := settings.AuthenticationOf(c.Auth, settings.Authentication{})
	require.NoError(t, err)
	require.NotNil(t, configured.Auth)
	require.NotNil(t, configured.Identify)
	require.NoError(t, os.Remove("keys.json"))
	_, err = settings.AuthenticationOf(c.Auth, settings.Authentication{})
	require.ErrorContains(t, err, "auth.jwt: ")

	none, err := settings.AuthenticationOf(config.Default().Auth, settings.Authentication{})
	require.NoError(t, err)
	require.Zero(t, none)
	err = ServeCommand{}.Run(&flags.Process{Ctx: t.Context(), Stderr: io.Discard})
	require.ErrorContains(t, err, "no caller could be authenticated: set auth.tokens or auth.jwt")
	require.False(t, strings.Contains(err.Error(), "\n"))
}
