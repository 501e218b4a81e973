package settings

import (
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
)

// Protocols returns the protocols of others that the server speaks.
func Protocols(c config.Protocols) (p httpapi.Protocols) {
	p.DurableStreams = c.DurableStreams.Enabled
	return p
}
