package mcptool

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxAnswers is how many answers to a server's own requests may be under way at a time. Each is a
// goroutine, and more over HTTP, for as long as the server does not take it.
const maxAnswers = 256

var errAnswers = errors.New("the server does not read the answers to its requests")

// isAnswer reports whether a message is an answer to a request of the server: only the context in
// which the SDK sends that never ends.
func isAnswer(ctx context.Context) bool { return ctx.Done() == nil }

// pipe is a connection over a pipe whose writes end with their context. The
// SDK's block for as long as the server does not read.
type pipe struct {
	mcp.Connection
	turn    chan struct{} // held by the one that writes
	answers atomic.Int32  // that are under way
}

func newPipe(c mcp.Connection) *pipe { return &pipe{Connection: c, turn: make(chan struct{}, 1)} }

// Write sends a message. If ctx ends first, a message that has been begun is
// still sent whole, or the next one would be unreadable; closing the pipe
// ends that.
func (p *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	if isAnswer(ctx) {
		defer p.answers.Add(-1)
		if p.answers.Add(1) > maxAnswers {
			_ = p.Close()
			return errAnswers
		}
	}
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
