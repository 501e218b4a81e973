package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/cmd/helixd/internal/cli/operate"
	"github.com/helixd/helixd/cmd/helixd/internal/clitest"
	"github.com/helixd/helixd/cmd/helixd/internal/flags"
	"github.com/helixd/helixd/cmd/helixd/internal/source"
)

// lasts is how long test certificates are valid: one that ends soon is a finding.
const lasts = 90 * 24 * time.Hour

// authority signs certificates of 127.0.0.1.
type authority struct {
	t    *testing.T
	file string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{t: t, file: filepath.Join(t.TempDir(), "ca.pem")}
	var err error
	a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(lasts), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.cert, a.cert, a.key.Public(), a.key)
	require.NoError(t, err)
	a.write(a.file, "CERTIFICATE", der)
	return a
}

func (a authority) write(name, kind string, der []byte) {
	a.t.Helper()
	require.NoError(a.t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// issue writes cert.pem and key.pem of a name into a folder.
func (a authority) issue(dir, name string, serial int64) (cert, key string) {
	a.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, private.Public(), a.key)
	require.NoError(a.t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(a.t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	a.write(cert, "CERTIFICATE", der)
	a.write(key, "PRIVATE KEY", keyDER)
	return cert, key
}

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
	a, dir := newAuthority(t), t.TempDir()
	cert, key := a.issue(dir, "server", 10)
	d := startConfigured(t, clitest.Config(t, "auth: {tokens: [{token: secret}]}\ntls: {cert: "+cert+", key: "+key+"}\n"))
	require.Regexp(t, "^https://127", d.URL)
	trusts := flags.Trust{CA: a.file}
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
	_, _, _, _, err = over(t, flags.Trust{CA: newAuthority(t).file}, d.URL+"/readyz", "", nil)
	require.ErrorContains(t, err, "certificate")
	status, answer := ask(t, http.MethodGet, "http"+d.URL[len("https"):]+"/healthz", "", "", "")
	require.Equal(t, http.StatusBadRequest, status, answer)
	require.NoError(t, alive(t.Context(), d.URL, time.Minute), "the watchdog's own question")

	a.issue(dir, "server", 11)
	_, _, _, serial, err = over(t, trusts, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.EqualValues(t, 11, serial, "a certificate that has changed is used at once")
	require.NoError(t, os.WriteFile(key, []byte("no key"), 0o600))
	_, _, _, serial, err = over(t, trusts, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.EqualValues(t, 11, serial, "the last good one stays")
	a.issue(dir, "server", 12)
	_, _, _, serial, err = over(t, trusts, d.URL+"/healthz", "", nil)
	require.NoError(t, err)
	require.EqualValues(t, 12, serial)
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	server, clients := newAuthority(t), newAuthority(t)
	cert, key := server.issue(t.TempDir(), "server", 10)
	d := startConfigured(t, clitest.Config(t, "auth: {tokens: [{token: secret}]}\ntls: {cert: "+cert+", key: "+key+", clientCA: "+clients.file+"}\n"))
	known, stranger := flags.Trust{CA: server.file}, flags.Trust{CA: server.file}
	known.Cert, known.Key = clients.issue(t.TempDir(), "web", 20)
	stranger.Cert, stranger.Key = newAuthority(t).issue(t.TempDir(), "web", 20)

	status, _, _, _, err := over(t, known, d.URL+"/sessions", "secret", nil)
	require.NoError(t, err)
	require.Equal(t, 200, status)
	status, _, _, _, err = over(t, known, d.URL+"/sessions", "wrong", nil)
	require.NoError(t, err)
	require.Equal(t, 401, status, "a certificate does not replace the token")
	for _, path := range []string{"/sessions", "/readyz", "/", "/nowhere"} {
		status, _, body, _, err := over(t, flags.Trust{CA: server.file}, d.URL+path, "secret", nil)
		require.NoError(t, err)
		require.Equal(t, 403, status, path)
		require.JSONEq(t, `{"error":"a client certificate is required","code":"UNAUTHORIZED"}`, body)
	}
	status, _, _, _, err = over(t, flags.Trust{CA: server.file}, d.URL+"/healthz", "", nil)
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
	a := newAuthority(t)
	cert, key := a.issue(t.TempDir(), "x", 1)
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
