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
func (s *Server) ready(ctx context.Context) error {
	if err := s.listening(ctx); err != nil || s.opts.Cluster == nil {
		return err
	}
	return s.elected(ctx)
}

func (s *Server) listening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if err := s.failed(ctx); err != nil {
			return err
		}
		if s.srv.ReadyForConnections(10*time.Millisecond) && s.srv.JetStreamEnabled() {
			return nil
		}
	}
}

// elected waits until this server follows a leader, or is it. That takes most
// of the cluster's servers, whenever somebody starts them.
func (s *Server) elected(ctx context.Context) error {
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	notice := time.NewTicker(peersNotice)
	defer notice.Stop()
	for {
		if err := s.failed(ctx); err != nil {
			return err
		}
		if s.srv.Healthz(&server.HealthzOptions{JSMetaOnly: true}).StatusCode == http.StatusOK {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
		case <-s.log.fatal:
		case <-notice.C:
			s.waiting()
		}
	}
}

func (s *Server) waiting() {
	if s.opts.Logger == nil {
		return
	}
	s.opts.Logger.Warn("waiting for most servers of the NATS cluster", slog.String("server", s.opts.Name),
		slog.Any("connected", s.peers()), slog.Any("routes", s.opts.Cluster.Routes))
}

// peers names the servers that this one is connected to.
func (s *Server) peers() []string {
	routes, err := s.srv.Routez(nil)
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

// failed tells why waiting is of no use.
func (s *Server) failed(ctx context.Context) error {
	select {
	case <-s.log.fatal:
		return errors.New(s.log.lastError())
	case <-ctx.Done():
		return context.Cause(ctx)
	default:
		return nil
	}
}
