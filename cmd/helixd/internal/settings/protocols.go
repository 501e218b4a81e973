package settings

import (
	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/httpapi"
	"github.com/helixd/helixd/httpapi/responses"
)

// Protocols returns the protocols of others that the server speaks.
func Protocols(c config.Protocols) (p httpapi.Protocols) {
	p.DurableStreams, p.AGUI = c.DurableStreams.Enabled, c.AGUI.Enabled
	if c.Responses.Enabled {
		p.Responses = &responses.Options{DefaultAgent: c.Responses.DefaultAgent}
	}
	return p
}
