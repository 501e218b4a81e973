package embed

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	startTimeout = 30 * time.Second
	// peersNotice is how often a server says that it waits for others.
	peersNotice = 10 * time.Second
)

// ready waits until the server takes connections and, in a cluster, until that
// can store something.
func (i *instance) ready(ctx context.Context) error {
	if err := i.listening(ctx); err != nil || i.opts.Cluster == nil {
		return err
	}
	return i.elected(ctx)
}

func (i *instance) listening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if err := i.failed(ctx); err != nil {
			return err
		}
		if i.srv.ReadyForConnections(10*time.Millisecond) && i.srv.JetStreamEnabled() {
			return nil
		}
	}
}

// elected waits until this server follows a leader, or is it. That takes most
// of the cluster's servers, which may start much later.
func (i *instance) elected(ctx context.Context) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	notice := time.NewTicker(peersNotice)
	defer notice.Stop()
	for {
		if err := i.failed(ctx); err != nil {
			return err
		}
		if i.srv.Healthz(&server.HealthzOptions{JSMetaOnly: true}).StatusCode == http.StatusOK {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		case <-i.log.fatal:
		case <-notice.C:
			i.waiting()
		}
	}
}

func (i *instance) waiting() {
	i.opts.Logger.Warn("waiting for most servers of the NATS cluster", slog.String("server", i.opts.Name),
		slog.Any("connected", i.peers()), slog.Any("routes", i.opts.Cluster.Routes))
}

// peers names the servers that this one is connected to.
func (i *instance) peers() []string {
	routes, err := i.srv.Routez(nil)
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for _, r := range routes.Routes {
		if r.RemoteName != "" {
			names[r.RemoteName] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// failed says why waiting is of no use.
func (i *instance) failed(ctx context.Context) error {
	select {
	case <-i.log.fatal:
		return errors.New(i.log.lastError())
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}
