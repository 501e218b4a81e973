package link

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	natsjs "github.com/nats-io/nats.go/jetstream"

	"github.com/helixd/helixd/eventlog"
)

const (
	// settleTimeout bounds settle where the context has no deadline.
	settleTimeout = time.Minute
	// settleTry is how long the first request may go unanswered: a request that reaches
	// servers without a leader is dropped. Each further one may take twice as long: the
	// machine may be slow.
	settleTry     = time.Second
	settleTryMost = 16 * time.Second
	settleLeast   = 20 * time.Millisecond // between two tries, doubled each time
	settleMost    = time.Second
)

// isAlone reports whether the server is in no cluster: it answers every request in the
// end.
func isAlone(nc *nats.Conn) bool { return nc.ConnectedClusterName() == "" }

// NewJetStream implements [jetstream.NewJetStream].
func NewJetStream(nc *nats.Conn) (natsjs.JetStream, error) {
	if isAlone(nc) {
		return natsjs.New(nc, natsjs.WithDefaultTimeout(LeaderPatience))
	}
	return natsjs.New(nc)
}

// Settle implements [jetstream.Settle].
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
		if eventlog.Sleep(ctx, wait) != nil {
			return err
		}
	}
}
