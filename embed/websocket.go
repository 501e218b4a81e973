package embed

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats-server/v2/server"
)

// WebSocket is where a server takes NATS clients over WebSocket. They may do
// what those of Options.Listen may.
type WebSocket struct {
	// Listen is the address, "host:port"; port 0 picks a free one.
	Listen string
	// Cert and Key, both or neither, are PEM files; with them it is wss.
	Cert, Key string
	// Origins are those of the web pages that may connect; "*": all. A page's
	// reader need not know what the page does, so by default none may. What is
	// no browser is not asked.
	Origins []string
}

// noOrigin is the origin of no page, since .invalid has no names. An empty list
// would allow all origins, and SameOrigin would compare Origin with Host, which
// are equal if a page's own name resolves to this server (DNS rebinding).
// Browsers send Origin with every WebSocket, so Host need not be checked.
const noOrigin = "https://none.invalid"

func (w WebSocket) apply(opts *server.Options) error {
	host, port, err := splitAddress("WebSocket address", w.Listen)
	if err != nil {
		return err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	opts.Websocket = server.WebsocketOpts{Host: host, Port: port, NoTLS: true, AllowedOrigins: w.Origins}
	switch {
	case slices.Contains(w.Origins, "*"):
		opts.Websocket.AllowedOrigins = nil
	case len(w.Origins) == 0:
		opts.Websocket.AllowedOrigins = []string{noOrigin}
	}
	if (w.Cert == "") != (w.Key == "") {
		return errors.New("embed: WebSocket: Cert and Key go together")
	}
	if w.Cert == "" {
		return nil
	}
	if opts.Websocket.TLSConfig, err = server.GenTLSConfig(&server.TLSConfigOpts{CertFile: w.Cert, KeyFile: w.Key}); err != nil {
		return fmt.Errorf("embed: WebSocket: TLS: %w", err)
	}
	return nil
}

// WebSocketURL is the address for NATS clients over WebSocket, empty without
// Options.WebSocket.
func (s *Server) WebSocketURL() string {
	if s.opts.WebSocket == nil {
		return ""
	}
	return s.instance().srv.WebsocketURL()
}
