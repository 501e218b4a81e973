package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/helixd/helixd/eventlog"
)

// PostJSON returns a request without an SDK: body as JSON, with options in place of its
// members, to a route below BaseURL, or below root if that is empty. client may be nil.
func (c Caller) PostJSON(client *http.Client, root, route string, body any, options Options) Post {
	return func(ctx context.Context, res **http.Response, around Middleware) error {
		raw, err := encode(body, options)
		if err != nil {
			return err
		}
		base, err := url.Parse(cmp.Or(c.BaseURL, root))
		if err != nil {
			return err
		}
		base.Path = strings.TrimSuffix(base.Path, "/") + "/" // it is a folder
		to, err := base.Parse(route)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(raw))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json")
		req.Header.Set("User-Agent", "helixd")
		if c.APIKey != "" {
			req.Header.Set("Authorization", "Bearer "+c.APIKey)
		}
		answer, err := around(req, Client(client).Do)
		if err != nil {
			return err
		}
		*res = answer
		if answer.StatusCode < http.StatusBadRequest {
			return nil
		}
		// Its end may be missing: what has come says why it failed.
		failed, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(failed))
		return fmt.Errorf("the provider answered %s", answer.Status)
	}
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
