package mcptool

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pipe is a connection over a pipe whose writes end with their context. The
// SDK's block for as long as the server does not read.
type pipe struct {
	mcp.Connection
	turn chan struct{} // held by the one that writes
}

func newPipe(c mcp.Connection) *pipe { return &pipe{Connection: c, turn: make(chan struct{}, 1)} }

// Write sends a message. If ctx ends first, a message that has been begun is
// still sent whole, or the next one would be unreadable; closing the pipe
// ends that.
func (p *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	d := deliveryOf(ctx)
	written := make(chan error, 1)
	go func() {
		defer d.begin()()
		err := p.Connection.Write(context.WithoutCancel(ctx), m)
		d.sent.Store(err == nil)
		<-p.turn
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
