package mcptool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/helixd/helixd/agentloop"
)

// MetaIdempotencyKey is where in a call's _meta its idempotency key is.
const MetaIdempotencyKey = "helix/idempotencyKey"

// call carries out a tool call. A request that found its connection dead is
// sent once more over a new one; a request that may have arrived is not.
func (c *Client) call(ctx context.Context, tool string, call *agentloop.Call, args json.RawMessage) (any, error) {
	inner, leave, err := c.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	for again := true; ; again = false {
		s, err := c.connected(inner)
		if err != nil {
			return nil, c.ended(ctx, err)
		}
		result, d, err := c.send(inner, s, tool, call, args)
		switch {
		case err == nil:
			c.answered()
			return resultOf(result)
		case inner.Err() != nil:
			c.awaitNotice(d)
			return nil, c.ended(ctx, err)
		case !d.lost(err, s):
			return nil, c.callError(err, d)
		}
		s.retire()
		if !again {
			return nil, c.down()
		}
	}
}

// ended says whether the call's context has ended or the client has.
func (c *Client) ended(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case c.life.Err() != nil:
		return errClosed
	}
	return err
}

// send makes the request and waits for the answer.
func (c *Client) send(ctx context.Context, s *session, tool string, call *agentloop.Call, args json.RawMessage) (*mcp.CallToolResult, *delivery, error) {
	params := &mcp.CallToolParams{
		Meta: mcp.Meta{MetaIdempotencyKey: call.IdempotencyKey}, Name: tool, Arguments: args,
	}
	token, stop := c.watch(ctx, call)
	defer stop()
	params.SetProgressToken(token)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.proc == nil { // a POST would continue without its session
		defer context.AfterFunc(s.life, cancel)()
	}
	ctx, d := withDelivery(ctx)
	result, err := s.mcp.CallTool(ctx, params)
	return result, d, err
}

// noticeTimeout is how long Close waits for the notices that calls were
// cancelled.
const noticeTimeout = time.Second

// awaitNotice makes Close wait until the server was notified that a call is
// cancelled: once it closes, the SDK does not send that any more.
func (c *Client) awaitNotice(d *delivery) {
	c.notices.Go(func() {
		timer := time.NewTimer(noticeTimeout)
		defer timer.Stop()
		select {
		case <-d.told:
		case <-timer.C:
		}
	})
}
