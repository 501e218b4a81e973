package embed_test

import (
	"testing"

	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/integration/testkit"
)

// certificates makes an authority and a certificate of 127.0.0.1.
func certificates(t *testing.T) embed.TLS {
	t.Helper()
	a := testkit.NewAuthority(t)
	cert, key := a.Issue(t.TempDir(), "server", 2)
	return embed.TLS{CA: a.File, Cert: cert, Key: key}
}
