package link

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"
)

const (
	// settleTimeout bounds settle where the context has no deadline.
	settleTimeout = time.Minute
	// settleTry is how long the first request may go unanswered: one that
	// reaches servers without a leader is dropped. Each may take twice as long
	// as the one before: the machine may be slow.
	settleTry     = time.Second
	settleTryMost = 16 * time.Second
	settleLeast   = 20 * time.Millisecond // between two tries, doubled each time
	settleMost    = time.Second
)

// isAlone reports whether the server is none of a cluster: whatever it is asked
// it answers, at last.
func isAlone(nc *nats.Conn) bool { return nc.ConnectedClusterName() == "" }

// NewJetStream returns JetStream's API, with patience for a server that is alone
// and so is asked once.
func NewJetStream(nc *nats.Conn) (natsjs.JetStream, error) {
	if isAlone(nc) {
		return natsjs.New(nc, natsjs.WithDefaultTimeout(LeaderPatience))
	}
	return natsjs.New(nc)
}

// Settle calls f again for as long as a cluster can't do what f asks only
// because it has just come up, or has just lost a server: streams without a
// leader, servers that have not heard of each other. f may be called again
// when it was obeyed and its answer lost. It ends with f's last error when ctx
// does, or after a minute if ctx has no deadline. A server that is alone is
// asked once.
func Settle(ctx context.Context, nc *nats.Conn, f func(context.Context) error) error {
	if isAlone(nc) {
		return f(ctx)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, settleTimeout)
		defer cancel()
	}
	wait, patience := settleLeast, settleTry
	for ; ; wait, patience = min(2*wait, settleMost), min(2*patience, settleTryMost) {
		try, cancel := context.WithTimeout(ctx, patience)
		err := f(try)
		cancel()
		if err == nil || !IsUnsettled(err) {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return err
		}
	}
}
