package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/helixd/helixd/cmd/helixd/config"
	"github.com/helixd/helixd/cmd/helixd/internal/settings"
	"github.com/helixd/helixd/embed"
	"github.com/helixd/helixd/eventlog"
	"github.com/helixd/helixd/eventlog/jetstream/restore"
	"github.com/helixd/helixd/eventlog/jetstream/subscriber"
)

// dial makes a connection; the caller closes it.
type dial func() (*nats.Conn, error)

// connect returns how to connect to the embedded server, or to the configured
// deployment, and what is known of its durability. An embedded server of a
// cluster waits for the others until ctx ends.
func (d *Daemon) connect(ctx context.Context, c *config.Config, openNATS bool, minter *subscriber.Minter, revocations *subscriber.Revocations, log *slog.Logger) (dial, eventlog.Durability, error) {
	if d.replaces != "" && c.NATS.Cluster.Listen == "" {
		return nil, "", errors.New("--replace: is for a cluster of embedded servers: set nats.cluster")
	}
	if d.replaces != "" && d.replaces == c.NATS.Name { // before its server runs, which would vote with an empty data folder
		return nil, "", fmt.Errorf("--replace %s: this is %s itself: a replacement needs another nats.name and an empty data folder", d.replaces, d.replaces)
	}
	if c.NATS.URL != "" {
		opts, err := settings.NATSOptions(c.NATS)
		if err != nil {
			return nil, "", err
		}
		opts = append(opts, nats.ErrorHandler(natsErrors(log)))
		return func() (*nats.Conn, error) {
			nc, err := nats.Connect(c.NATS.URL, opts...)
			if err != nil {
				return nil, fmt.Errorf("nats: %w", err)
			}
			return nc, nil
		}, "", nil
	}
	if c.NATS.Replicas > 1 && c.NATS.Cluster.Listen == "" { // not a matter of the file alone: a flag may give the URL
		return nil, "", errors.New("nats.replicas: needs nats.url or nats.cluster.listen: one embedded server keeps one replica")
	}
	if err := checkFree(ctx, c); err != nil {
		return nil, "", err
	}
	srv, err := embed.Start(ctx, embedOptions(c, openNATS, minter, revocations, log))
	if err != nil {
		return nil, "", err
	}
	d.onClose(srv.Stop)
	if d.replaces != "" {
		removed, err := srv.RemoveServer(ctx, d.replaces)
		switch {
		case err != nil:
			return nil, "", err
		case removed:
			log.Info("the cluster has no such server any more: others get its replicas", "server", d.replaces)
		default:
			log.Warn("--replace: the cluster has no such server: it was replaced before, or the name is another one", "server", d.replaces)
		}
	}
	d.server, d.refuses, d.sync, d.dropRevoked = srv, srv.Refuses, srv.Sync, srv.DropRevoked
	d.NATSURL, d.webSocketURL = srv.ClientURL(), srv.WebSocketURL()
	inside := func() (*nats.Conn, error) { return srv.Connect() }
	if c.NATS.Cluster.Listen != "" {
		// The streams' replicas decide what an acknowledged append survives, not
		// how one of several servers syncs its disk. c.Durability is the latter: with fsync each of those that acknowledge an append has synced
		// it, in the log by which the servers agree.
		return inside, "", nil
	}
	return inside, eventlog.Durability(c.Durability), nil
}

const (
	// natsErrorEvery is how often the log has the same error of the connections to a deployment.
	natsErrorEvery = time.Minute
	// natsErrorsMost is how many errors the log has in that time: texts can have names of subjects.
	natsErrorsMost = 100
)

// natsErrors returns a handler that logs what connections can't return to a caller. While credentials
// are refused, each try to reconnect is such an error. A slow consumer is no concern: followers read
// again what was dropped.
func natsErrors(log *slog.Logger) nats.ErrHandler {
	var mu sync.Mutex
	logged := map[string]time.Time{} // by the error's text
	return func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrSlowConsumer) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		maps.DeleteFunc(logged, func(_ string, at time.Time) bool { return time.Since(at) >= natsErrorEvery })
		if _, is := logged[err.Error()]; is || len(logged) >= natsErrorsMost {
			return
		}
		logged[err.Error()] = time.Now()
		log.Warn("nats: the connection has an error", "error", err)
	}
}

// checkFree looks at the embedded server's addresses before it does: its own error names
// neither the setting nor the process that has the port.
func checkFree(ctx context.Context, c *config.Config) error {
	for _, l := range []struct{ key, address, setting string }{
		{"nats.listen", c.NATS.Listen, "--nats-listen ADDRESS"},
		{"nats.websocket.listen", c.NATS.WebSocket.Listen, "nats.websocket.listen in the configuration"},
		{"nats.cluster.listen", c.NATS.Cluster.Listen, "nats.cluster.listen in the configuration, and name it in the other nodes' nats.cluster.routes"},
	} {
		if l.address == "" {
			continue
		}
		listener, err := settings.Listen(ctx, l.address, l.setting)
		if err != nil {
			return fmt.Errorf("%s: %w", l.key, err)
		}
		listener.Close()
	}
	return nil
}

func embedOptions(c *config.Config, openNATS bool, minter *subscriber.Minter, revocations *subscriber.Revocations, log *slog.Logger) embed.Options {
	n := c.NATS
	o := embed.Options{
		DataDir: settings.ServerFolder(c.DataDir), SyncInterval: c.SyncInterval(), GroupSync: true, Listen: n.Listen,
		User: n.User, Password: n.Password.Reveal(), AllowRead: openNATS, Subscribers: subscriberKeys(minter), Name: n.Name, Logger: log,
		MinFree: int64(c.Disk.MinFree), Cluster: settings.ClusterOf(n),
	}
	if revocations != nil {
		o.Revoked = revocations.Revoked
	}
	if w := n.WebSocket; w.Listen != "" {
		o.WebSocket = &embed.WebSocket{Listen: w.Listen, Cert: w.Cert, Key: w.Key, Origins: c.CORS.Origins}
	}
	return o
}

// joinNotice is how often a node that waits for a log says so.
const joinNotice = 10 * time.Second

// awaitLog returns when there is a log, and says from time to time that there is none.
func awaitLog(ctx context.Context, nc *nats.Conn, log *slog.Logger) error {
	for {
		try, cancel := context.WithTimeout(ctx, joinNotice)
		err := restore.Await(try, nc)
		cancel()
		if err == nil || ctx.Err() != nil || nc.IsClosed() {
			return err
		}
		log.Warn("waiting for a log: helixd restore or helixd cluster grow creates it, or a node without --join", "error", err)
	}
}
