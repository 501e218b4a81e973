package daemon

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/cli/operate"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
	"github.com/helixd/helixd/integration/testkit"
)

// over asks by its own connection, and returns the answer's protocol and
// body, and the serial number of the server's certificate.
func over(t *testing.T, f flags.Trust, url, token string, tweak func(*http.Transport)) (status int, proto, body string, serial int64, err error) {
	t.Helper()
	client, err := f.Client()
	require.NoError(t, err)
	transport := client.Transport.(*http.Transport)
	defer transport.CloseIdleConnections()
	if tweak != nil {
		tweak(transport)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", "", 0, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Proto, string(raw), resp.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a, dir := testkit.NewAuthority(t), t.TempDir()
	cert, key := a.Issue(dir, "server", 10)
	d := startConfigured(t, clitest.Config(t, "auth: {tokens: [{token: secret}]}\ntls: {cert: "+cert+", key: "+key+"}\n"))
	require.Regexp(t, "^https://127", d.URL)
	trusts := flags.Trust{CA: a.File}
	status, proto, body, serial, err := over(t, trusts, d.URL+"/readyz", "secret", nil)
	require.NoError(t, err)
	require.Equal(t, []any{200, "HTTP/2.0", int64(10)}, []any{status, proto, serial})
	require.Contains(t, body, `"durability"`)
	_, proto, _, _, err = over(t, trusts, d.URL+"/readyz", "secret", func(h *http.Transport) { h.ForceAttemptHTTP2, h.TLSClientConfig.MaxVersion = false, tls.VersionTLS12 })
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1", proto)
	_, _, _, _, err = over(t, trusts, d.URL+"/readyz", "", func(h *http.Transport) {
		h.TLSClientConfig.MinVersion, h.TLSClientConfig.MaxVersion = tls.VersionTLS11, tls.VersionTLS11
	})
	require.ErrorContains(t, err, "protocol version")
	_, _, _, _, err = over(t, flags.Trust{CA: testkit.NewAuthority(t).File}, d.URL+"/readyz", "", nil)
	require.ErrorContains(t, err, "certificate")
	status, answer := ask(t, http.MethodGet, "http"+d.URL[len("https"):]+"/healthz", "", "", "")
	require.Equal(t, http.StatusBadRequest, status, answer)
	require.NoError(t, alive(t.Context(), d.URL, time.Minute), "the watchdog's own question")

	a.Issue(dir, "server", 11)
	_, _, _, serial, err = over(t, trusts, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.EqualValues(t, 11, serial, "a certificate that has changed is used at once")
	require.NoError(t, os.WriteFile(key, []byte("no key"), 0o600))
	_, _, _, serial, err = over(t, trusts, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.EqualValues(t, 11, serial, "the last good one stays")
	a.Issue(dir, "server", 12)
	_, _, _, serial, err = over(t, trusts, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.EqualValues(t, 12, serial)
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	server, clients := testkit.NewAuthority(t), testkit.NewAuthority(t)
	cert, key := server.Issue(t.TempDir(), "server", 10)
	d := startConfigured(t, clitest.Config(t, "auth: {tokens: [{token: secret}]}\ntls: {cert: "+cert+", key: "+key+", clientCA: "+clients.File+"}\n"))
	known, stranger := flags.Trust{CA: server.File}, flags.Trust{CA: server.File}
	known.Cert, known.Key = clients.Issue(t.TempDir(), "web", 20)
	stranger.Cert, stranger.Key = testkit.NewAuthority(t).Issue(t.TempDir(), "web", 20)

	status, _, _, _, err := over(t, known, d.URL+"/sessions", "secret", nil)
	require.NoError(t, err)
	require.Equal(t, 200, status)
	status, _, _, _, err = over(t, known, d.URL+"/sessions", "wrong", nil)
	require.NoError(t, err)
	require.Equal(t, 401, status, "a certificate does not replace the token")
	for _, path := range []string{"/sessions", "/readyz", "/", "/nowhere"} {
		status, _, body, _, err := over(t, flags.Trust{CA: server.File}, d.URL+path, "secret", nil)
		require.NoError(t, err)
		require.Equal(t, 403, status, path)
		require.JSONEq(t, `{"error":"a client certificate is required","code":"UNAUTHORIZED"}`, body)
	}
	status, _, _, _, err = over(t, flags.Trust{CA: server.File}, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.Equal(t, 200, status)
	_, _, _, _, err = over(t, stranger, d.URL+"/sessions", "secret", nil)
	require.Error(t, err)
	require.NoError(t, alive(t.Context(), d.URL, time.Minute))

	trusted := []string{"--server", d.URL, "--ca", known.CA, "--cert", known.Cert, "--cert-key", known.Key}
	_, _, err = clitest.Run[operate.Commands](t, "", append([]string{"healthy", "--timeout", "1m"}, trusted...)...)
	require.NoError(t, err)
	_, _, err = clitest.Run[operate.Commands](t, "", "healthy", "--timeout", "1m", "--server", d.URL)
	require.Error(t, err, "nobody vouches for the certificate")
	listed, err := source.DaemonFlags{Server: d.URL, Token: "secret", Trust: known}.Connect().Get(t.Context(), "/sessions", nil)
	require.NoError(t, err)
	listed.Close()
	text, _, err := clitest.Run[operate.Commands](t, "", append([]string{"doctor", "--token", "secret"}, trusted...)...)
	require.NoError(t, err)
	require.Contains(t, text, d.URL+" is ready")
}

func TestTrustFlagsErrors(t *testing.T) {
	t.Parallel()
	a := testkit.NewAuthority(t)
	cert, key := a.Issue(t.TempDir(), "x", 1)
	for want, f := range map[string]flags.Trust{
		"--ca: open nowhere":                    {CA: "nowhere"},
		"--ca: " + key + ": has no cert":        {CA: key},
		"--cert and --cert-key need each other": {Cert: cert},
		"--cert, --cert-key: open nowhere":      {Cert: cert, Key: "nowhere"},
	} {
		_, err := f.Client()
		require.ErrorContains(t, err, want)
		_, err = source.DaemonFlags{Server: "http://127.0.0.1:1", Trust: f}.Connect().Get(t.Context(), "/", nil)
		require.ErrorContains(t, err, want)
	}
}
