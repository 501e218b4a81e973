package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// request returns a request of a route below the API's root, with body as JSON.
func (c Caller) request(ctx context.Context, route string, body any) (*http.Request, error) {
	raw, err := encode(body, c.Options)
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(cmp.Or(c.BaseURL, c.Root))
	if err != nil {
		return nil, err
	}
	base.Path = strings.TrimSuffix(base.Path, "/") + "/" // it is a folder
	to, err := base.Parse(route)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "helixd")
	if c.Own == nil && c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	for _, headers := range []map[string]string{c.Own, c.Headers} {
		for name, value := range headers {
			req.Header.Set(name, value)
		}
	}
	return req, nil
}

// encode returns body as JSON. Texts are sent as they are, without escapes for HTML.
func encode(body any, options Options) ([]byte, error) {
	raw, err := eventlog.Marshal(body)
	if err != nil || len(options) == 0 {
		return raw, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	for name, value := range options {
		if members[name], err = eventlog.Marshal(value); err != nil {
			return nil, err
		}
	}
	return eventlog.Marshal(members)
}
