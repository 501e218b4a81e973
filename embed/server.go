package embed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const startTimeout = 30 * time.Second

// Server is a running nats-server.
type Server struct {
	srv      *server.Server
	log      *logger
	opts     Options
	password string // of userInside
	unlock   func()
	stop     sync.Once
}

// Start runs a server and returns when it takes connections. ctx bounds the
// start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	opts, password, err := o.serverOptions()
	if err != nil {
		return nil, err
	}
	unlock, err := lock(o.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embed: data dir: %w", err)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		unlock()
		return nil, fmt.Errorf("embed: %w", err)
	}
	s := &Server{srv: srv, log: newLogger(o.Logger), opts: o, password: password, unlock: unlock}
	srv.SetLogger(s.log, false, false)
	srv.Start()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("embed: server did not start: %w", err)
	}
	return s, nil
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		select {
		case <-s.log.fatal:
			return errors.New(s.log.lastError())
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		if s.srv.ReadyForConnections(10*time.Millisecond) && s.srv.JetStreamEnabled() {
			return nil
		}
	}
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
