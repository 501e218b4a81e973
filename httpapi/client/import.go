package client

import (
	"context"
	"io"
	"net/http"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
	"github.com/helixd/helixd/httpapi/api"
)

// Import makes a new session of exported records, one a line, such as
// [Client.Records] yields with Dead. Records of any number are sent as they
// are read. open opens them again for each attempt, which closes them, perhaps
// after Import has returned; an error of it, or of reading, ends the import.
//
// The import is repeated: it continues after a break. While the server works, it
// is waited for as long as ctx allows.
func (c *Client) Import(ctx context.Context, sessionID string, open func() (io.ReadCloser, error)) (api.Imported, error) {
	k := request{safe: true, Request: remotehttp.Request{
		Method: http.MethodPost, Route: "import", Open: open, ContentType: ndjson, Idle: -1,
	}}
	return fetch(ctx, c, k.of("sessions", sessionID), func(i *api.Imported) bool { return i.SessionID != "" })
}
