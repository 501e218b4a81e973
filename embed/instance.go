package embed

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"
)

// instance is one nats-server, from its start to its end. A [Server] may have
// several, one after the other.
type instance struct {
	srv  *server.Server
	gate *gatekeeper // nil: the server itself decides about clients
	log  *logger
	opts Options
	// serves is set when it is ready: one of a cluster that is not yet takes
	// itself for alone, and knows of no stream.
	serves atomic.Bool
	unread sync.WaitGroup // watches what clients leave unread
	stop   context.CancelFunc
}

func newInstance(o Options) (*instance, error) {
	opts, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	srv, gate, err := newServer(opts, o)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	return &instance{srv: srv, gate: gate, log: newLogger(o.Logger), opts: o}, nil
}

// start starts it and waits until it is ready.
func (i *instance) start(ctx context.Context) error {
	i.srv.SetLogger(i.log, false, false)
	i.srv.Start()
	if err := i.ready(ctx); err != nil {
		return fmt.Errorf("embed: server did not start: %w", err)
	}
	i.serves.Store(true)
	if i.opts.Listen != "" || i.opts.WebSocket != nil {
		var watched context.Context
		watched, i.stop = context.WithCancel(context.Background())
		i.unread.Go(func() { i.watchUnread(watched) })
	}
	return nil
}

// end stops it and waits until its data is on the disk.
func (i *instance) end() {
	if i.stop != nil {
		i.stop()
		i.unread.Wait()
	}
	i.srv.Shutdown()
	i.srv.WaitForShutdown()
}

// fixed returns the options with which its successor has the same addresses.
func (i *instance) fixed() Options {
	o := i.opts
	if o.Listen != "" {
		o.Listen = withPort(o.Listen, i.srv.ClientURL())
	}
	if o.WebSocket != nil {
		w := *o.WebSocket
		w.Listen = withPort(w.Listen, i.srv.WebsocketURL())
		o.WebSocket = &w
	}
	return o
}

// withPort returns an address with the port of a URL.
func withPort(address, at string) string {
	host, _, err := net.SplitHostPort(address)
	u, uerr := url.Parse(at)
	if err != nil || uerr != nil || u.Port() == "" {
		return address
	}
	return net.JoinHostPort(host, u.Port())
}

// madeRoom is how many connections from outside makeRoom ends at once: others
// may come before the one that the room is for.
const madeRoom = 16

// makeRoom ends connections from outside if the server has all that it may have:
// those of the process come first.
func (i *instance) makeRoom() {
	if i.srv.NumClients() < i.opts.MaxConnections {
		return
	}
	all, err := i.srv.Connz(nil)
	if err != nil {
		return
	}
	ended := 0
	for _, c := range all.Conns {
		if c.Port == 0 || ended == madeRoom { // a pipe has no port
			continue
		}
		ended++
		_ = i.srv.DisconnectClientByID(c.Cid) // an error: it has left
	}
}
