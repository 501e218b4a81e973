package settings

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/helixd/helixd/httpapi"
)

// A caller is named by its certificate, unless a token does.
func TestCertifiedCallers(t *testing.T) {
	t.Parallel()
	web := &x509.Certificate{Subject: pkix.Name{CommonName: "web", Organization: []string{"Example"}}}
	verified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{web}, VerifiedChains: [][]*x509.Certificate{{web}}}
	for name, tc := range map[string]struct {
		state *tls.ConnectionState
		known string
		want  string
	}{
		"none":         {nil, "", ""},
		"verified":     {verified, "", "CN=web,O=Example"},
		"not verified": {&tls.ConnectionState{PeerCertificates: verified.PeerCertificates}, "", ""},
		"a JWT too":    {verified, "ada", "ada"},
	} {
		c, err := certified(func(*http.Request) (httpapi.Caller, error) {
			return httpapi.Caller{Name: "t", Subject: tc.known}, nil
		})(&http.Request{TLS: tc.state})
		require.NoError(t, err)
		require.Equal(t, httpapi.Caller{Name: "t", Subject: tc.want}, c, name)
	}
}
