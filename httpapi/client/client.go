package client

import (
	"context"
	"net/http"
	"time"

	"github.com/helixd/helixd/agentloop/remote/remotehttp"
)

// Options configure a [Client].
type Options struct {
	Headers map[string]string // sent with every request
	// Token returns the bearer token; it is asked before every attempt, and
	// its errors are not retried. Nil, or an empty token: none is sent. See
	// [StaticToken].
	Token func(context.Context) (string, error)
	// HTTPClient sends the requests; nil: one of the client's own that
	// follows no redirects. A Timeout of it would also end streams.
	HTTPClient *http.Client
	// MaxRetries is how many attempts in a row may fail before a call gives
	// up, of those that may be repeated; 0: 3, negative: none is repeated.
	MaxRetries int
	// RetryBase is the wait before the first repetition, doubled each time up
	// to 30 s; 0: 1 s. A server that asks for more with Retry-After gets it,
	// up to 2 min; if it asks for more than that, the call gives up.
	RetryBase time.Duration
	// Idle is how long the server may send nothing before an attempt has
	// failed; 0: 60 s. It sends heartbeats on streams every 15 s.
	Idle time.Duration
}

// StaticToken is a token that does not change.
func StaticToken(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// Client speaks to a server. It is safe for concurrent use and owns no
// goroutines.
type Client struct{ http *remotehttp.Transport }

// New returns a client of the server whose routes are below baseURL. If baseURL is
// not an http or https URL, every call returns an error.
func New(baseURL string, o *Options) *Client {
	if o == nil {
		o = &Options{}
	}
	opts := remotehttp.Options{
		Headers: o.Headers, MaxRetries: o.MaxRetries, RetryBaseDelay: o.RetryBase, Client: o.HTTPClient, Idle: o.Idle,
	}
	if token := o.Token; token != nil {
		opts.HeaderFunc = func(ctx context.Context) (map[string]string, error) {
			t, err := token(ctx)
			if err != nil || t == "" {
				return nil, err
			}
			return map[string]string{"Authorization": "Bearer " + t}, nil
		}
	}
	return &Client{http: remotehttp.New(baseURL, &opts)}
}

// Send makes one attempt of any request, for callers that read an answer in their own
// way. It fails only if there is no answer; the answer, whatever its status, is to be
// closed.
func (c *Client) Send(ctx context.Context, r remotehttp.Request) (*remotehttp.Response, error) {
	return c.http.Send(ctx, r)
}
