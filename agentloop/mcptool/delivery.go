package mcptool

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// delivery is what a transport knows of a call's messages. A request that may
// have arrived may have been carried out, and is not sent again.
type delivery struct {
	call   context.Context
	sent   atomic.Bool   // the request may have arrived
	status atomic.Int32  // of the answer to the last POST; 0: none
	told   chan struct{} // closed when the server was notified that the call is cancelled
	once   sync.Once
}

type deliveryKey struct{}

// withDelivery lets the transport find the delivery by a message's context.
func withDelivery(call context.Context) (context.Context, *delivery) {
	d := &delivery{call: call, told: make(chan struct{})}
	return context.WithValue(call, deliveryKey{}, d), d
}

// deliveryOf returns what withDelivery put there; never nil.
func deliveryOf(ctx context.Context) *delivery {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		return d
	}
	return &delivery{call: context.Background(), told: make(chan struct{})}
}

// begin is called by the transport before it sends one of the call's messages,
// what it returns after that. The SDK notifies the server of a cancelled call
// from its own goroutine, whose context has the call's values.
func (d *delivery) begin() (end func()) {
	if d.call.Err() == nil {
		return func() {}
	}
	return func() { d.once.Do(func() { close(d.told) }) }
}

// lost reports whether a request that failed has certainly not arrived,
// because its connection was dead already.
func (d *delivery) lost(err error, s *session) bool {
	switch {
	case d.sent.Load():
		return false
	case s.proc != nil, s.life.Err() != nil:
		return true
	}
	return errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, mcp.ErrSessionMissing)
}
