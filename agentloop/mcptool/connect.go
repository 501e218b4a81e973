package mcptool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helixd/helixd/agentloop/model/upstream"
)

// The pause between attempts to connect again.
const (
	minBackoff = 250 * time.Millisecond
	maxBackoff = 30 * time.Second
)

// backoff is the pause after an attempt that n others went before.
func backoff(n int) time.Duration {
	return min(minBackoff<<min(n, 10), maxBackoff)
}

// connected returns a session that calls may use, a new one if need be.
func (c *Client) connected(ctx context.Context) (*session, error) {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.turn }()
	old := c.session
	if old.usable() {
		return old, nil
	}
	if !c.mayConnect() {
		return nil, c.down()
	}
	select {
	case <-old.done: // two processes might be in each other's way
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s, err := c.connect(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // says nothing of the server
	}
	c.attempted(err)
	if err != nil {
		c.log.Warn("an MCP server can't be reached again", append([]any{"error", err}, upstream.Attrs(c.down())...)...)
		return nil, c.down()
	}
	c.log.Info("an MCP server was connected to again")
	c.session = s
	return s, nil
}

func (c *Client) mayConnect() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !time.Now().Before(c.retryAt)
}

// attempted puts off the next attempt to connect. One that succeeds counts
// too, or a server that dies of every call would be started without a pause.
func (c *Client) attempted(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.why = nil
	if opened, ok := errors.AsType[*openError](err); ok {
		c.why = c.explain(err, opened.status)
	}
	c.retryAt = time.Now().Add(backoff(c.attempts))
	c.attempts++
}

// answered notes that the server works.
func (c *Client) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts, c.retryAt = 0, time.Time{}
}

// connect starts or contacts the server, begins a session and lists the tools.
func (c *Client) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ConnectTimeout)
	defer cancel()
	ctx, d := withDelivery(ctx)
	var transport mcp.Transport
	var proc *process
	if c.server.URL != "" {
		// A stream for the server's own messages would cost more than it
		// brings; see the package's comment.
		transport = &mcp.StreamableClientTransport{
			Endpoint: c.server.URL, HTTPClient: c.http, DisableStandaloneSSE: true, MaxEventSize: maxMessage,
		}
	} else {
		var err error
		if proc, err = startProcess(c.server.Command, c.server.Env, c.opts.StopTimeout); err != nil {
			return nil, &openError{text: err, cause: err}
		}
		transport = proc
	}
	m, err := c.sdkClient().Connect(ctx, transport, nil)
	if err != nil {
		return nil, c.failed(err, proc, d)
	}
	s := newSession(m, proc)
	go s.watch(c.log)
	if s.tools, err = list(ctx, m); err != nil {
		s.close()
		return nil, c.failed(fmt.Errorf("list of tools: %w", err), proc, d)
	}
	return s, nil
}

// failed ends the process that could not be talked to and says how.
func (c *Client) failed(err error, p *process, d *delivery) error {
	e := &openError{text: c.reason(err), cause: err, status: int(d.status.Load())}
	if p != nil {
		p.stop()
		e.text = fmt.Errorf("%w (the command: %s)", e.text, p.state)
	}
	return e
}

// sdkClient makes a client that can do nothing for the server. The SDK gets to see only what such a
// client may be sent: it dereferences the parameters of other notifications, which may be missing.
func (c *Client) sdkClient() *mcp.Client {
	o := &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ProgressNotificationHandler: c.onProgress,
	}
	var logged sync.Once // a server may say so at each call
	changed := func(context.Context, *mcp.ToolListChangedRequest) {
		logged.Do(func() { c.log.Warn("an MCP server's list of tools has changed: the one of the start stays") })
	}
	if c.server.URL == "" {
		o.ToolListChangedHandler = changed // over HTTP it would open a stream
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "helixd", Version: c.opts.Version}, o)
	client.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			switch {
			case method == "ping", method == "notifications/progress":
			case method == "notifications/tools/list_changed":
				if c.server.URL != "" {
					changed(ctx, nil)
				}
			case strings.HasPrefix(method, "notifications/"):
				return nil, nil
			default:
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: method + " is not supported"}
			}
			return next(ctx, method, req)
		}
	})
	return client
}
