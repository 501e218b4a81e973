package embed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Server is a running nats-server.
type Server struct {
	srv      *server.Server
	log      *logger
	opts     Options
	password string // of userInside
	unlock   func()
	stop     sync.Once
}

// Start runs a server and returns when it takes connections. In a cluster that
// is when most of the servers run and have found each other: until ctx ends it
// waits for them, and says so every 10 seconds. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	unlock, err := lock(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	s, err := newEmbedded(o)
	if err != nil {
		unlock()
		return nil, err
	}
	s.unlock = unlock
	s.srv.SetLogger(s.log, false, false)
	s.srv.Start()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("embed: server did not start: %w", err)
	}
	return s, nil
}

func newEmbedded(o Options) (*Server, error) {
	name, fresh, err := o.identify()
	if err != nil {
		return nil, err
	}
	o.Name = name
	opts, password, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	srv, err := newServer(opts, o.Subscribers)
	if err != nil {
		return nil, fmt.Errorf("embed: %w", err)
	}
	if fresh {
		if err := o.remember(); err != nil {
			return nil, err
		}
	}
	return &Server{srv: srv, log: newLogger(o.Logger), opts: o, password: password}, nil
}

// Connect returns a connection through a pipe inside the process, which the
// caller closes. It may do everything.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	inside := []nats.Option{
		nats.InProcessServer(s.srv), nats.UserInfo(userInside, s.password), nats.ErrorHandler(s.log.clientError),
	}
	nc, err := nats.Connect("", append(inside, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("embed: connect: %w", err)
	}
	return nc, nil
}

// ClientURL is the address for NATS clients from outside, empty without
// Options.Listen.
func (s *Server) ClientURL() string {
	if s.opts.Listen == "" {
		return ""
	}
	return s.srv.ClientURL()
}

// Name is the server's name.
func (s *Server) Name() string { return s.opts.Name }

// SyncInterval is how often data reaches the disk; 0 means at every append.
func (s *Server) SyncInterval() time.Duration { return s.opts.SyncInterval }

// Stop ends the server and waits until its data is on the disk. It is
// idempotent.
func (s *Server) Stop() {
	s.stop.Do(func() {
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
		s.unlock()
	})
}
