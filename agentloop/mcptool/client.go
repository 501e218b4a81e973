package mcptool

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/helixd/helixd/agentloop"
	"github.com/helixd/helixd/agentloop/model/upstream"
)

// Server says where an MCP server is: Command or URL.
type Server struct {
	Name    string            // [a-zA-Z0-9_-]{1,64}, how its tools' names begin
	Command []string          // the program and its arguments
	Env     map[string]string // of the command, beside PATH, HOME and LANG
	URL     string            // the streamable HTTP endpoint
	Headers map[string]string // of every HTTP request
}

// Options configure a client; zero values mean the defaults.
type Options struct {
	Logger         *slog.Logger  // nil: silent
	Version        string        // ours, for the server; empty: unknown
	CallTimeout    time.Duration // of a tool call; 0: none
	ConnectTimeout time.Duration // to start, begin a session and list the tools; 0: 30 s
	StopTimeout    time.Duration // that a command has to end before SIGTERM, and again before SIGKILL; 0: 5 s
}

// Defaults of [Options].
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultStopTimeout    = 5 * time.Second
)

// Client is an MCP server in use. Its methods may be called concurrently.
type Client struct {
	server Server
	opts   Options
	log    *slog.Logger
	hide   upstream.Secrets
	base   *http.Transport
	http   *http.Client
	tools  []agentloop.Tool

	life context.Context // ends with Close
	end  context.CancelFunc

	turn    chan struct{} // held while connecting, or looking at session
	session *session

	mu       sync.Mutex // guards what follows
	closed   bool
	calls    sync.WaitGroup
	notices  sync.WaitGroup  // to servers, of calls that were cancelled
	attempts int             // to connect again, since a call was last answered
	retryAt  time.Time       // the next one's
	why      *upstream.Error // the last one failed; nil: it has not
	watched  map[string]*progress
	tokens   uint64
}

// Open starts or contacts a server and lists its tools. It fails if the server
// can't be used; the error has no URL, header or variable in it.
func Open(ctx context.Context, server Server, o *Options) (*Client, error) {
	switch {
	case !validName.MatchString(server.Name):
		return nil, fmt.Errorf("mcptool: server %q: name must match %s", server.Name, validName)
	case (len(server.Command) > 0) == (server.URL != ""):
		return nil, fmt.Errorf("mcptool: server %s: needs either a command or a URL", server.Name)
	}
	c := newClient(server, o)
	s, err := c.connect(ctx)
	if err == nil {
		c.session = s
		c.tools, err = c.toolsOf(s.tools)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("mcptool: server %s: %w", server.Name, err)
	}
	return c, nil
}

func newClient(server Server, o *Options) *Client {
	c := &Client{server: server, turn: make(chan struct{}, 1), watched: map[string]*progress{}}
	if o != nil {
		c.opts = *o
	}
	c.opts.Version = cmp.Or(c.opts.Version, "unknown")
	c.opts.ConnectTimeout = cmp.Or(c.opts.ConnectTimeout, DefaultConnectTimeout)
	c.opts.StopTimeout = cmp.Or(c.opts.StopTimeout, DefaultStopTimeout)
	c.opts.Logger = cmp.Or(c.opts.Logger, slog.New(slog.DiscardHandler))
	c.log = c.opts.Logger.With("mcp", server.Name)
	c.hide = upstream.SecretsOf(server.Headers, slices.Collect(maps.Values(server.Env))...)
	c.base = http.DefaultTransport.(*http.Transport).Clone()
	c.http = upstream.NoRedirects(&http.Client{Transport: &roundTripper{base: c.base, headers: server.Headers}})
	c.life, c.end = context.WithCancel(context.Background())
	return c
}

// Tools returns the server's tools as they were when it was opened.
func (c *Client) Tools() []agentloop.Tool { return slices.Clone(c.tools) }

// Close ends the calls in flight and the connection, and waits for the
// command to have ended. It is idempotent; the error is always nil.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.calls.Wait()
	c.notices.Wait()
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if c.session != nil {
		c.session.close()
	}
	c.base.CloseIdleConnections()
	return nil
}

// enter counts a call in, unless the client is closed. What it returns ends
// with ctx and with the client; leave counts the call out.
func (c *Client) enter(ctx context.Context) (inner context.Context, leave func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, errClosed
	}
	c.calls.Add(1)
	inner, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.life, cancel)
	return inner, func() {
		stop()
		cancel()
		c.calls.Done()
	}, nil
}
