package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// Metrics returns what the server measures, in Prometheus' text format. A
// server without them refuses with 501.
func (c *Client) Metrics(ctx context.Context) (string, error) {
	k := get("metrics", nil)
	k.Accept = "text/plain"
	var text strings.Builder
	err := c.do(ctx, k, func(a *remotehttp.Response) error {
		if !a.Is(k.Accept) {
			return fmt.Errorf("%w: it is not of type %s", ErrMalformed, k.Accept)
		}
		text.Reset()
		for line, err := range a.Lines(maxLine) {
			if err != nil {
				return err
			}
			text.Write(line)
			text.WriteByte('\n')
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return text.String(), nil
}
