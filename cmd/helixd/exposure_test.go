package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
)

// TestExposure: what is unsafe is logged at the start, and the doctor fails on it
// and says what to change. Neither shows a token.
func TestExposure(t *testing.T) {
	t.Parallel()
	const strong = "5e1c07c2b1a94f0e8b7d1f7f2c3a4d6e"
	for name, tc := range map[string]struct {
		text string
		keys []string
	}{
		"loopback":      {"listen: 127.0.0.1:1\nauth: {tokens: [{token: weak1}]}\n", nil},
		"all is wrong":  {"listen: 0.0.0.0:1\nauth: {tokens: [{token: weak1, name: web}, {token: " + strong + "}]}\n", []string{"tls", "auth.tokens[0]"}},
		"every address": {"listen: ':1'\nauth: {tokens: [{token: " + strong + "}]}\n", []string{"tls"}},
		"nobody knows":  {"listen: 10.0.0.1:1\nauth: {allowUnauthenticated: true}\n", []string{"listen", "tls"}},
		"TLS":           {"listen: 0.0.0.0:1\ntls: {cert: c, key: k}\nauth: {tokens: [{token: " + strong + "}]}\n", nil},
		"a proxy's TLS": {"listen: 0.0.0.0:1\ntls: {proxy: true}\nauth: {tokens: [{token: weak1}]}\n", []string{"auth.tokens[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "helix.yaml")
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			c, err := config.Load(path, os.LookupEnv)
			require.NoError(t, err)
			logs := &logBuffer{}
			settings.WarnOfExposure(c, slog.New(slog.NewTextHandler(logs, nil)))
			require.Equal(t, len(tc.keys), strings.Count(logs.String(), "level=WARN"), logs.String())
			out, err := doctorText(t, t.Context(), time.Now, "--config", path, "--config-only")
			if len(tc.keys) == 0 {
				require.NoError(t, err, out)
				require.Contains(t, out, "ok       exposure ")
			} else {
				require.ErrorIs(t, err, errIll)
			}
			require.Equal(t, len(tc.keys), strings.Count(out, "problem  exposure "), out)
			for _, key := range tc.keys {
				require.Contains(t, logs.String(), `msg="`+key+`: `)
			}
			require.NotContains(t, out+logs.String(), "weak1")
		})
	}
}
