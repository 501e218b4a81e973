package settings

import (
	"encoding/base64"
	"net/http"
	"net/url"

	"github.com/helixd/helixd/cmd/helixd/config"
)

// Collector returns where spans are sent, and with what headers. A user in the URL, with a
// password or without, becomes a header, unless the configuration has that header.
func Collector(c config.Tracing) (endpoint string, headers map[string]string, err error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return "", nil, err
	}
	headers = map[string]string{}
	if u.User != nil {
		password, _ := u.User.Password()
		headers["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	u.User, u.RawQuery, u.Fragment = nil, "", "" // the exporter sends no query
	for name, value := range c.Headers {
		headers[http.CanonicalHeaderKey(name)] = value.Reveal()
	}
	return u.JoinPath("v1", "traces").String(), headers, nil
}
